package logserver

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/banksman/banksman/services/internal/grants"
)

// MinVersion is the oldest nats-server whose JetStream API cannot be reached
// through the reply subject of a request.
const MinVersion = grants.MinServer

// OldServer says that the linked nats-server is too old to be safe.
type OldServer struct{ Version string }

func (e *OldServer) Error() string {
	return fmt.Sprintf("start the bus: nats-server %s lets a role delete the stream through a reply subject; use %s or newer",
		e.Version, MinVersion)
}

// NotDurable says that the store would acknowledge before writing.
type NotDurable struct{ Got string }

func (e *NotDurable) Error() string {
	return "start the bus: sync_interval is " + e.Got + ", want always; a power cut would lose acknowledged events"
}

func checkVersion(version string) error {
	if !atLeast(version, MinVersion) {
		return &OldServer{version}
	}
	return nil
}

// atLeast compares dotted versions; a pre-release counts as older.
func atLeast(version, want string) bool {
	core, pre, _ := strings.Cut(version, "-")
	v, w := strings.Split(core, "."), strings.Split(want, ".")
	for i := range w {
		if i >= len(v) {
			return false
		}
		got, err := strconv.Atoi(v[i])
		need, _ := strconv.Atoi(w[i])
		if err != nil || got != need {
			return err == nil && got > need
		}
	}
	return pre == ""
}

func checkDurable(c *server.JetStreamConfig) error {
	if c == nil {
		return &NotDurable{"unknown, the store is off"}
	}
	if !c.SyncAlways {
		return &NotDurable{c.SyncInterval.String()}
	}
	return nil
}
