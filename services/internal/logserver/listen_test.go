package logserver_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/logserver"
)

// Nobody can connect before the bus is prepared: a role that is started together
// with it would store its first event before the site's own.
func TestPreparedBeforeAnybodyConnects(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().(*net.TCPAddr)
	free.Close()
	o := newSite(t, events.RoleReader).options(t)
	o.Port = address.Port
	dial := func() error {
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port)))
		if err == nil {
			c.Close()
		}
		return err
	}
	prepared := false
	o.Prepare = func(ctx context.Context, s *logserver.Server) error {
		prepared = true
		if dial() == nil {
			t.Error("the bus listens before it is prepared")
		}
		_, err := s.Admin().LastSeq(ctx)
		return err
	}
	s, err := logserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	if err := dial(); err != nil || !prepared {
		t.Errorf("prepared %v, then %v", prepared, err)
	}
	o.StoreDir, o.ConfFile, o.Prepare = t.TempDir(), "", nil
	if again, err := logserver.Start(t.Context(), o); err == nil {
		again.Shutdown()
		t.Error("two buses listen on one port")
	}
}

func TestWhatCannotBePreparedDoesNotStart(t *testing.T) {
	o := newSite(t, events.RoleReader).options(t)
	fault := errors.New("not this store")
	o.Prepare = func(context.Context, *logserver.Server) error { return fault }
	if _, err := logserver.Start(t.Context(), o); !errors.Is(err, fault) {
		t.Errorf("started with %v", err)
	}
}
