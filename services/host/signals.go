package host

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals ends the context with the first interrupt or TERM, which drains, and
// closes hurry with the second one, which cancels what is still running. Further
// ones change nothing. Stop gives the signals their usual meaning back.
func Signals(parent context.Context) (ctx context.Context, hurry <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	second, over, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			case <-got:
			}
			switch n {
			case 0:
				cancel()
			case 1:
				close(second)
			}
		}
	}()
	return ctx, second, func() {
		signal.Stop(got)
		close(over)
		<-ended
		cancel()
	}
}
