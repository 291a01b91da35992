package front

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/evidence"
	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/tsa"
	"github.com/banksman/banksman/services/internal/view"
)

// stamping says how a head is to be stamped.
type stamping struct {
	url    string // of the authority
	query  string // file to write
	answer string // file to read
	ca     string
}

func (s *stamping) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.url, "tsa", "", "time-stamping authority to ask, by its URL")
	cmd.Flags().StringVar(&s.query, "tsq", "", "write the request for an authority to this file")
	cmd.Flags().StringVar(&s.answer, "tsr", "", "take an authority's answer to such a request from this file")
	cmd.Flags().StringVar(&s.ca, "tsa-ca", "", "certificates, in PEM, that have to vouch for the authority")
}

func given(flag string) int {
	if flag == "" {
		return 0
	}
	return 1
}

func (s *stamping) count() int { return given(s.url) + given(s.query) + given(s.answer) }

// certificates reads a file of certificates, nil for no file.
func certificates(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--tsa-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--tsa-ca %s: it holds no certificate in PEM", path)
	}
	return pool, nil
}

// stamped is what audit anchor --tsa --json prints.
type stamped struct {
	anchored
	Time time.Time `json:"time,omitzero"`
	TSA  string    `json:"tsa,omitempty"`
}

// anchorStamp is audit anchor with a time stamp.
func (a *app) anchorStamp(ctx context.Context, t stamping) error {
	l, err := a.layout()
	if err != nil {
		return err
	}
	roots, err := certificates(t.ca)
	if err != nil {
		return err
	}
	shelf := tsa.Shelf(l.AuditStamps())
	var answer []byte
	if t.answer != "" {
		answer, err = os.ReadFile(t.answer)
	} else {
		answer, err = a.askStamp(ctx, shelf, t)
	}
	if err != nil || t.query != "" {
		return err
	}
	return a.putStamp(shelf, answer, roots)
}

// askStamp makes the request for the newest head, and sends it or writes it down.
func (a *app) askStamp(ctx context.Context, shelf tsa.Shelf, t stamping) ([]byte, error) {
	r, err := a.openLog()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cp, err := r.Checkpoint()
	if err != nil {
		return nil, err
	}
	held, err := shelf.Prepare(cp.Size, cp.Note)
	if err != nil {
		return nil, err
	}
	switch {
	case t.query != "":
		if err := anchorFile(t.query, held.Request); err != nil {
			return nil, err
		}
		where := anchoredAt(cp, t.query)
		return nil, a.print(where, func(w io.Writer) {
			fmt.Fprintf(w, "the request to stamp the head of %d entries is in %s\n", where.Size, t.query)
		})
	case held.Answer != nil: // it was stamped before
		return held.Answer, nil
	}
	answer, err := tsa.Ask(ctx, t.url, held.Request)
	if err != nil {
		return nil, err
	}
	s, err := tsa.Parse(answer)
	if err == nil {
		err = s.Answers(held.Request) // and no other that was made here
	}
	return answer, err
}

func anchoredAt(cp tlog.Checkpoint, where string) anchored {
	origin, _, _ := tlog.ParseCheckpoint(cp.Note)
	return anchored{Origin: origin, Size: cp.Size, Root: base64.StdEncoding.EncodeToString(cp.Root[:]), Where: where}
}

// putStamp checks an answer and keeps it beside the log.
func (a *app) putStamp(shelf tsa.Shelf, answer []byte, roots *x509.CertPool) error {
	s, err := tsa.Parse(answer)
	if err == nil && roots != nil {
		err = s.Trusted(roots)
	}
	if err != nil {
		return err
	}
	held, s, err := shelf.Put(answer)
	if err != nil {
		return err
	}
	_, cp, err := tlog.ParseCheckpoint(held.Checkpoint)
	if err != nil {
		return err
	}
	out := stamped{anchoredAt(cp, string(shelf)), s.Time, s.TSA}
	return a.print(out, func(w io.Writer) {
		fmt.Fprintf(w, "the head of %d entries, root %s, existed at %s, says %s\n", out.Size, out.Root, out.Time.Format(time.RFC3339), view.Printable(out.TSA))
	})
}

// stampedHead lets a bundle be about a head that has a time stamp: the newest of them
// where one is asked for, else the newest head of all if it has one.
func (a *app) stampedHead(from *evidence.Source, wanted bool) error {
	l, err := a.layout()
	if err != nil {
		return err
	}
	held, err := tsa.Shelf(l.AuditStamps()).List()
	if err != nil {
		return err
	}
	newest, err := from.Log.Checkpoint()
	if err != nil {
		return err
	}
	for _, h := range slices.Backward(held) {
		_, cp, err := tlog.ParseCheckpoint(h.Checkpoint)
		if err != nil || h.Answer == nil || !wanted && (cp.Size != newest.Size || cp.Root != newest.Root) {
			continue
		}
		from.Head, from.Stamp = cp, h.Answer
		return nil
	}
	if wanted {
		return &agentapi.Error{Code: "no_stamp", Message: "export with a time stamp: no head has one", Next: "make one with 'banksman audit anchor --tsa URL'"}
	}
	return nil
}
