package logbook

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type entry struct {
	ID  string `json:"id"`
	End int    `json:"end"`
}

func (e entry) Name() string { return e.ID }

func open(t *testing.T) Book[entry] {
	t.Helper()
	b, err := Open[entry](filepath.Join(t.TempDir(), "a", "b"), ".entry.json")
	must(t, err)
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// left are the records and what could not be read.
func left(t *testing.T, b Book[entry]) ([]entry, string) {
	t.Helper()
	list, err := b.Leftovers()
	if err != nil {
		return list, err.Error()
	}
	return list, ""
}

func TestRecordIsThereUntilItIsDropped(t *testing.T) {
	b := open(t)
	e := entry{ID: "one"}
	must(t, b.Put(e, true))
	for _, sync := range []bool{true, false} {
		e.End++
		must(t, b.Put(e, sync))
		if got, unread := left(t, b); !slices.Equal(got, []entry{e}) || unread != "" {
			t.Errorf("left %+v, %s", got, unread)
		}
	}
	must(t, os.WriteFile(b.Beside("one", ".output"), nil, 0o600))
	must(t, os.WriteFile(b.Beside("one", ".log"), nil, 0o600))
	must(t, b.Drop(e, ".output"))
	must(t, b.Drop(e, ".output"))
	if names, err := os.ReadDir(b.Dir()); err != nil || len(names) != 1 || names[0].Name() != "one.log" {
		t.Errorf("the folder holds %v, %v", names, err)
	}
}

func TestUnreadableRecordStaysAndIsNamed(t *testing.T) {
	b := open(t)
	must(t, b.Put(entry{ID: "good"}, false))
	must(t, os.WriteFile(b.Beside("torn", ".entry.json"), []byte("{"), 0o600))
	must(t, os.WriteFile(b.Beside("other", ".entry.json"), []byte(`{"id":"one"}`), 0o600))
	must(t, os.WriteFile(b.Beside("half", ".entry.json.new"), []byte("{"), 0o600)) // its process died
	for range 2 {
		got, unread := left(t, b)
		if len(got) != 1 || got[0].ID != "good" || !strings.Contains(unread, "torn.entry.json") || !strings.Contains(unread, "it names one") || strings.Contains(unread, "half") {
			t.Errorf("left %+v, %s", got, unread)
		}
	}
}

func TestFolderThatIsGoneIsMadeAgain(t *testing.T) {
	b := open(t)
	must(t, os.RemoveAll(b.Dir()))
	must(t, b.Put(entry{ID: "one"}, true))
	if got, unread := left(t, b); len(got) != 1 || unread != "" {
		t.Errorf("left %+v, %s", got, unread)
	}
	var fail *os.PathError
	if _, err := Open[entry](b.Beside("one", ".entry.json"), ".x"); !errors.As(err, &fail) {
		t.Errorf("a book inside a file: %v", err)
	}
}

// What cannot be written leaves the older record and nothing half done.
func TestFailedPutChangesNothing(t *testing.T) {
	b := open(t)
	must(t, b.Put(entry{ID: "one"}, false))
	must(t, os.Mkdir(b.Beside("one", ".entry.json.new"), 0o700)) // in the way
	must(t, os.WriteFile(filepath.Join(b.Beside("one", ".entry.json.new"), "x"), nil, 0o600))
	if err := b.Put(entry{ID: "one", End: 1}, false); err == nil || !strings.Contains(err.Error(), "record one") {
		t.Errorf("put: %v", err)
	}
	if got, _ := left(t, b); len(got) != 1 || got[0].End != 0 {
		t.Errorf("left %+v", got)
	}
}
