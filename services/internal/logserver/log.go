package logserver

import (
	"fmt"
	"log/slog"
)

// serverLog hands the server's own lines to slog. Notices are many and of
// interest to few, so they are debug lines here.
type serverLog struct{ log *slog.Logger }

func (l *serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats-server", "says", fmt.Sprintf(format, v...))
}
func (l *serverLog) Debugf(format string, v ...any) { l.Noticef(format, v...) }
func (l *serverLog) Tracef(format string, v ...any) { l.Noticef(format, v...) }
func (l *serverLog) Warnf(format string, v ...any) {
	l.log.Warn("nats-server warns", "says", fmt.Sprintf(format, v...))
}

func (l *serverLog) Errorf(format string, v ...any) {
	l.log.Error("nats-server reports an error", "says", fmt.Sprintf(format, v...))
}

// Fatalf only logs: the server must not end the process of other roles.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.log.Error("nats-server gives up", "says", fmt.Sprintf(format, v...))
}
