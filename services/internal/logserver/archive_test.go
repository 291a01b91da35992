package logserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/grants"
	"github.com/banksman/banksman/services/internal/logserver"
)

// everything is the filter of the audited stream.
const everything = "bm.>"

// filled is a site whose stream holds fifty jobs and the opening of an epoch that carries
// the first and two others.
func filled(t *testing.T) (s *site, o logserver.Options, open events.EpochOpened, before []events.Stored) {
	t.Helper()
	s = newSite(t, events.RoleProposer, events.RoleAuditor, events.RoleReader, events.RoleBus)
	o = s.options(t)
	srv := start(t, o)
	defer srv.Shutdown()
	a := connect(t, s.config(srv, "proposer")).Appender(nobody{})
	for i := range 50 {
		subject := events.For("job.proposed", "default", fmt.Sprintf("job-%d", i), "proposer")
		if _, err := a.Append(t.Context(), subject, 0, events.JobProposed{Argv: []string{"/bin/true"}}); err != nil {
			t.Fatal(err)
		}
	}
	open = events.EpochOpened{Epoch: 2, Why: events.EpochRequested, Through: 45, Carried: map[string][]string{"job": {"job-0", "job-7", "job-30"}}}
	subject := events.For("epoch.opened", events.SiteScope, events.EpochID(2), "auditor")
	if _, err := connect(t, s.config(srv, "auditor")).Appender(nobody{}).Append(t.Context(), subject, 0, open); err != nil {
		t.Fatal(err)
	}
	before, err := connect(t, s.config(srv, "reader")).Read(t.Context(), 1, everything, 100)
	if err != nil || len(before) != 51 {
		t.Fatalf("%d events, %v", len(before), err)
	}
	return s, o, open, before
}

// thin starts the bus, and has it let go of what is not carried.
func thin(t *testing.T, o logserver.Options, open events.EpochOpened) *logserver.Server {
	t.Helper()
	o.Prepare = func(ctx context.Context, s *logserver.Server) error { return s.Thin(ctx, open.Carries()) }
	return start(t, o)
}

// What is carried keeps its place, its time and its bytes; what comes later goes on behind
// it, and expectations of old positions still hold.
func TestThinnedStreamGoesOn(t *testing.T) {
	s, o, open, before := filled(t)
	srv := thin(t, o, open)
	var want []events.Stored
	for _, st := range before {
		if open.Carries()(st.Seq, st.Subject) {
			want = append(want, st)
		}
	}
	reader := connect(t, s.config(srv, "reader"))
	got, err := reader.Read(t.Context(), 1, everything, 100)
	if diff := cmp.Diff(want, got); err != nil || diff != "" || len(want) != 3+6 {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if history, err := reader.History(t.Context(), "job-30"); err != nil || len(history) != 1 || history[0].Seq != 31 {
		t.Errorf("the history of a carried job: %v, %v", history, err)
	}
	if st, found, err := reader.Last(t.Context(), events.Filter("job", "job-8")); err != nil || found {
		t.Errorf("what is not carried is still there: %v, %v", st, err)
	}
	a := connect(t, s.config(srv, "proposer")).Appender(nobody{})
	subject := events.For("job.handed_over", "default", "job-30", "proposer")
	var conflict *bus.Conflict
	if _, err := a.Append(t.Context(), subject, 0, events.JobHandedOver{}); !errors.As(err, &conflict) || conflict.Last != 31 {
		t.Errorf("a wrong position: %v", err)
	}
	if seq, err := a.Append(t.Context(), subject, 31, events.JobHandedOver{}); err != nil || seq != 52 {
		t.Errorf("the next event has sequence %d, %v", seq, err)
	}
	srv.Shutdown()
	srv = thin(t, o, open) // again, which changes nothing
	got, err = connect(t, s.config(srv, "reader")).Read(t.Context(), 1, everything, 100)
	if diff := cmp.Diff(want, got[:len(want)]); err != nil || diff != "" || len(got) != len(want)+1 {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
}

// However far a process came that was killed while it made the stream anew, the next start
// leads to the same stream; an archive that is not whole is refused and kept.
func TestStreamIsMadeAgainAfterAKill(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"while the archive was written": func(t *testing.T, path string) {
			if err := os.Rename(path, path+".tmp"); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path+".tmp", 100); err != nil {
				t.Fatal(err)
			}
		},
		"after it was written": func(*testing.T, string) {},
		"cut":                  func(t *testing.T, path string) { cut(t, path) },
	} {
		t.Run(name, func(t *testing.T) {
			s, o, open, before := filled(t)
			path := logserver.ArchivePath(o.StoreDir, grants.Stream)
			archive(t, path, open, before)
			harm(t, path)
			if name == "cut" {
				if srv, err := logserver.Start(t.Context(), o); err == nil {
					srv.Shutdown()
					t.Fatal("an archive that is cut is taken")
				}
				if _, err := os.Stat(path); err != nil {
					t.Errorf("the archive is gone: %v", err)
				}
				archive(t, path, open, before) // the attempt has left half a stream
			}
			srv := start(t, o)
			got, err := connect(t, s.config(srv, "reader")).Read(t.Context(), 1, everything, 100)
			want := 3 + 6
			if name == "while the archive was written" {
				want = len(before)
			}
			if err != nil || len(got) != want || got[len(got)-1].Seq != 51 {
				t.Errorf("%d events, want %d, %v", len(got), want, err)
			}
			if left, _ := filepath.Glob(path); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// archive writes the archive that a bus makes that thins its stream.
func archive(t *testing.T, path string, open events.EpochOpened, all []events.Stored) {
	t.Helper()
	a, err := logserver.NewArchive(path, all[len(all)-1].Seq)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range all {
		if open.Carries()(st.Seq, st.Subject) {
			if err := a.Add(st); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := a.Commit(); err != nil {
		t.Fatal(err)
	}
}

// cut takes the last third off a file.
func cut(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, info.Size()*2/3)
	}
	if err != nil {
		t.Fatal(err)
	}
}
