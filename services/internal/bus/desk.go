package bus

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/banksman/banksman/services/internal/grants"
)

// Bounds on what readers may have open.
const (
	deskIdle      = 5 * time.Minute // a consumer nobody pulls from ends
	deskConsumers = 128             // made in any deskIdle
)

// pageConsumer is all of a consumer that a reader may choose. Everything else
// is fixed: pulled, in memory, nothing to acknowledge, ended when idle. Above
// all it has no deliver subject.
type pageConsumer struct {
	Name           string     `json:"name"`
	Description    string     `json:"description,omitempty"`
	DeliverPolicy  string     `json:"deliver_policy"`
	OptStartSeq    uint64     `json:"opt_start_seq,omitempty"`
	OptStartTime   *time.Time `json:"opt_start_time,omitempty"`
	FilterSubject  string     `json:"filter_subject,omitempty"`
	FilterSubjects []string   `json:"filter_subjects,omitempty"`
	HeadersOnly    bool       `json:"headers_only,omitempty"`

	AckPolicy         string `json:"ack_policy"`
	ReplayPolicy      string `json:"replay_policy"`
	MemStorage        bool   `json:"mem_storage"`
	Replicas          int    `json:"num_replicas"`
	InactiveThreshold int64  `json:"inactive_threshold"` // nanoseconds
}

// createRequest is what JetStream takes.
type createRequest struct {
	Stream string       `json:"stream_name"`
	Config pageConsumer `json:"config"`
	Action string       `json:"action"`
}

// deskRequest is what a reader sends, as far as it matters.
type deskRequest struct {
	Stream string `json:"stream_name"`
	Config struct {
		pageConsumer   `json:",inline"`
		Durable        string `json:"durable_name"`
		DeliverSubject string `json:"deliver_subject"`
	} `json:"config"`
}

// desk makes consumers for readers; see package grants for why.
type desk struct {
	conn   *Conn
	queues []string

	mu   sync.Mutex
	made []time.Time // within the last deskIdle, oldest first
}

// ServeDesk answers readers who page through the stream until stop is called.
// Only the bus itself may.
func (c *Conn) ServeDesk(ctx context.Context, pools []string) (stop func(), err error) {
	d := &desk{conn: c}
	for _, q := range grants.Durables(pools) {
		d.queues = append(d.queues, q.Name)
	}
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	for call, serve := range map[string]func(context.Context, []string, []byte) []byte{
		"CREATE": d.create,
		"DELETE": d.remove,
	} {
		subject := grants.DeskPrefix + ".CONSUMER." + call + "." + grants.Stream + ".>"
		s, err := c.subscribe(ctx, subject, func(m *nats.Msg) {
			answer := serve(ctx, strings.Split(m.Subject, ".")[4:], m.Data)
			if err := m.Respond(answer); err != nil {
				c.log.Warn("the desk could not answer a reader", "error", err)
			}
		})
		if err != nil {
			stop()
			return nil, err
		}
		stops = append(stops, s)
	}
	return stop, nil
}

// create answers CONSUMER.CREATE; tokens are the consumer's name and filter.
func (d *desk) create(ctx context.Context, tokens []string, body []byte) []byte {
	const kind = "consumer_create_response"
	var req deskRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return refuse(kind, "the request cannot be read: "+err.Error())
	}
	cfg := req.Config.pageConsumer
	switch name := tokens[0]; {
	case req.Stream != grants.Stream || (cfg.Name != name && req.Config.Durable != name):
		return refuse(kind, "the request names another stream or consumer than its subject")
	case slices.Contains(d.queues, name):
		return refuse(kind, "this name belongs to a queue of banksman")
	case req.Config.DeliverSubject != "":
		return refuse(kind, "readers may pull only; leave deliver_subject out")
	case !d.admit():
		return refuse(kind, "too many readers are paging; try again in five minutes")
	default:
		cfg.Name = name
	}
	if cfg.DeliverPolicy == "" {
		cfg.DeliverPolicy = "all"
	}
	cfg.AckPolicy, cfg.ReplayPolicy, cfg.MemStorage, cfg.Replicas, cfg.InactiveThreshold = "none", "instant", true, 1, deskIdle.Nanoseconds()
	out, err := json.Marshal(createRequest{Stream: grants.Stream, Config: cfg, Action: "create"}, json.Deterministic(true))
	if err != nil {
		return refuse(kind, err.Error())
	}
	subject := "$JS.API.CONSUMER.CREATE." + grants.Stream + "." + cfg.Name
	if cfg.FilterSubject != "" {
		subject += "." + cfg.FilterSubject
	}
	return d.forward(ctx, kind, subject, out)
}

// remove answers CONSUMER.DELETE, except for queues of the roles.
func (d *desk) remove(ctx context.Context, tokens []string, _ []byte) []byte {
	const kind = "consumer_delete_response"
	if len(tokens) != 1 || slices.Contains(d.queues, tokens[0]) {
		return refuse(kind, "this name belongs to a queue of banksman")
	}
	return d.forward(ctx, kind, "$JS.API.CONSUMER.DELETE."+grants.Stream+"."+tokens[0], nil)
}

func (d *desk) forward(ctx context.Context, kind, subject string, body []byte) []byte {
	r, err := d.conn.request(ctx, &nats.Msg{Subject: subject, Data: body})
	if err != nil {
		return refuse(kind, err.Error())
	}
	return r.Data
}

// admit counts a new consumer against the bound.
func (d *desk) admit() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.made = slices.DeleteFunc(d.made, func(t time.Time) bool { return now.Sub(t) > deskIdle })
	if len(d.made) >= deskConsumers {
		return false
	}
	d.made = append(d.made, now)
	return true
}

// refuse speaks JetStream's language, so that the nats command line shows it.
func refuse(kind, why string) []byte {
	b, err := json.Marshal(map[string]any{
		"type":  "io.nats.jetstream.api.v1." + kind,
		"error": map[string]any{"code": 403, "err_code": 0, "description": "banksman: " + why},
	}, json.Deterministic(true))
	if err != nil {
		return fmt.Appendf(nil, `{"error":{"code":500}}`)
	}
	return b
}
