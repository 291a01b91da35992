package proposer

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/texts"
	"github.com/banksman/banksman/services/internal/view"
)

// words puts kept texts back.
func (d *door) words() texts.Reader { return texts.Reader{Bus: d.env.Bus, Standing: d.env.Standing} }

// replyJob answers with a job whose words are whole: a denial's reason has to reach the
// agent.
func (d *door) replyJob(ctx context.Context, w http.ResponseWriter, status int, v view.Detail) error {
	if err := d.words().Fill(ctx, v.Words()...); err != nil {
		return err
	}
	return reply(w, status, v)
}

// sameWords returns the stored words if they say the same as those that are sent, else
// those. What was erased cannot be compared and counts as the same.
func (d *door) sameWords(ctx context.Context, stored, sent string) (string, error) {
	was := stored
	if err := d.words().Fill(ctx, &was); err != nil {
		return "", err
	}
	if was == sent || was == texts.Erased {
		return stored, nil
	}
	return sent, nil
}

// keepFailed says why words could not be kept.
func keepFailed(err error) error {
	if errors.Is(err, bus.ErrFull) {
		return full("the store of people's words is full")
	}
	return fmt.Errorf("store the proposal: %w", err)
}
