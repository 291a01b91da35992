package logserver

import (
	"errors"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

func TestOldServersAreRefused(t *testing.T) {
	for version, fine := range map[string]bool{
		"2.15.3": true, "2.15.4": true, "2.16.0": true, "3.0.0": true, "2.100.0": true,
		"2.15.2": false, "2.15.3-RC.1": false, "2.14.99": false, "1.99.0": false, "2.15": false, "": false, "dev": false,
	} {
		err := checkVersion(version)
		var old *OldServer
		if fine != (err == nil) || (err != nil && !errors.As(err, &old)) {
			t.Errorf("version %q: %v", version, err)
		}
	}
	if err := checkVersion(server.VERSION); err != nil {
		t.Error(err)
	}
}

func TestLazyStoreIsRefused(t *testing.T) {
	var lazy *NotDurable
	if err := checkDurable(&server.JetStreamConfig{SyncInterval: 120e9}); !errors.As(err, &lazy) {
		t.Errorf("two minutes: %v", err)
	}
	if err := checkDurable(nil); !errors.As(err, &lazy) {
		t.Errorf("no store: %v", err)
	}
	if err := checkDurable(&server.JetStreamConfig{SyncAlways: true}); err != nil {
		t.Errorf("always: %v", err)
	}
}
