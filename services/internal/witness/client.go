package witness

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	modtlog "golang.org/x/mod/sumdb/tlog"

	"github.com/banksman/banksman/services/internal/tlog"
)

// maxAnswer_bytes bounds what a witness may answer.
const maxAnswer_bytes = 64 << 10

// Stale is a witness's word that it has cosigned another head than the old one that
// it was told.
type Stale struct{ Size int64 }

func (e *Stale) Error() string {
	return fmt.Sprintf("the witness has cosigned a head of %d leaves", e.Size)
}

// Refused is any other answer than a cosignature.
type Refused struct {
	Status int
	Text   string
}

func (e *Refused) Error() string {
	return fmt.Sprintf("the witness refuses the head: status %d: %s", e.Status, e.Text)
}

// Client asks one witness.
type Client struct {
	Witness Witness
	HTTP    *http.Client // nil for the default
}

// Grown proves how the log grew from a size to the head's.
type Grown func(old int64) (modtlog.TreeProof, error)

// Cosign gets the witness's cosignature lines for a signed head. Old is the size that
// the witness is thought to have; what it says instead is tried once.
func (c *Client) Cosign(ctx context.Context, old int64, head tlog.Checkpoint, grown Grown) (lines string, err error) {
	for range 2 {
		var proof modtlog.TreeProof
		if old > 0 && old < head.Size {
			if proof, err = grown(old); err != nil {
				return "", err
			}
		}
		lines, err = c.Add(ctx, old, proof, head.Note)
		var stale *Stale
		if !errors.As(err, &stale) || stale.Size > head.Size || stale.Size == old {
			break
		}
		old = stale.Size
	}
	if err != nil {
		return "", fmt.Errorf("ask witness %s: %w", c.Witness.Name, err)
	}
	return lines, nil
}

// Add is one call of add-checkpoint. The error is a [*Stale], a [*Refused] or of the
// network.
func (c *Client) Add(ctx context.Context, old int64, proof modtlog.TreeProof, checkpoint []byte) (lines string, err error) {
	body := fmt.Appendf(nil, "old %d\n", old)
	for _, h := range proof {
		body = append(base64.StdEncoding.AppendEncode(body, h[:]), '\n')
	}
	body = append(append(body, '\n'), checkpoint...)
	url := strings.TrimSuffix(c.Witness.URL, "/") + "/add-checkpoint"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer_bytes))
	if err != nil {
		return "", err
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return c.mine(checkpoint, text)
	case http.StatusConflict:
		size, err := strconv.ParseInt(strings.TrimSuffix(string(text), "\n"), 10, 64)
		if err == nil && size >= 0 {
			return "", &Stale{Size: size}
		}
	}
	return "", &Refused{Status: answer.StatusCode, Text: strconv.QuoteToASCII(strings.TrimSpace(string(text[:min(len(text), 200)])))}
}

// mine keeps the lines that verify by the witness's key.
func (c *Client) mine(checkpoint, lines []byte) (string, error) {
	n, err := note.Open(append(bytes.Clone(checkpoint), lines...), note.VerifierList(c.Witness.Key))
	if err != nil {
		return "", fmt.Errorf("what it answers does not verify by the key %s: %w", c.Witness.Key, err)
	}
	out := ""
	for _, s := range n.Sigs {
		if line := "— " + s.Name + " " + s.Base64 + "\n"; bytes.Contains(lines, []byte(line)) {
			out += line
		}
	}
	if out == "" {
		return "", &Refused{Status: http.StatusOK, Text: "the answer holds no cosignature"}
	}
	return out, nil
}
