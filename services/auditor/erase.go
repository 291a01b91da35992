package auditor

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// textEraser deletes kept texts; *bus.Conn is the one.
type textEraser interface {
	EraseText(ctx context.Context, digest string) (erased int, err error)
}

// eraser deletes the texts that sealed orders name. The order is sealed first, so that
// no text is ever missing without a signed head that says why. Deleting again what is
// gone changes nothing, and so each start looks at every order once.
type eraser struct {
	bus  textEraser
	slog *slog.Logger

	mu    sync.Mutex
	todo  map[string]bool // digests
	moved chan struct{}
}

func newEraser(bus textEraser, log *slog.Logger) *eraser {
	return &eraser{bus: bus, slog: log, todo: map[string]bool{}, moved: make(chan struct{}, 1)}
}

// add takes digests whose orders are sealed.
func (e *eraser) add(digests []string) {
	if len(digests) == 0 {
		return
	}
	e.mu.Lock()
	for _, d := range digests {
		e.todo[d] = true
	}
	e.mu.Unlock()
	select {
	case e.moved <- struct{}{}:
	default:
	}
}

// recallErasures takes what the index knows.
func (a *auditor) recallErasures() error {
	var digests []string
	err := a.index.Facts(factErased, func(key string, _ []byte) error {
		digests = append(digests, strings.TrimPrefix(key, factErased))
		return nil
	})
	a.eraser.add(digests)
	return err
}

// eraseAgain is how long a deletion that failed waits.
const eraseAgain = 10 * time.Second

// run deletes until the context ends; the context's end is no error.
func (e *eraser) run(ctx context.Context) error {
	again := time.NewTicker(eraseAgain)
	defer again.Stop()
	for {
		e.mu.Lock()
		digests := slices.Sorted(maps.Keys(e.todo))
		e.mu.Unlock()
		for _, d := range digests {
			n, err := e.bus.EraseText(ctx, d)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				e.slog.Error("a text that is to be erased is still there", "digest", d, "error", err)
				continue
			}
			if n > 0 {
				e.slog.Info("a text was erased", "digest", d, "copies", n)
			}
			e.mu.Lock()
			delete(e.todo, d)
			e.mu.Unlock()
		}
		select {
		case <-e.moved:
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}
