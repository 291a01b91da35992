package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
)

// Layout is what the bus hosts and how large it may become.
type Layout struct {
	// Pools have queues of their own.
	Pools []string
	// MaxBytes of the audited stream, and of the texts that its events name.
	MaxBytes int64
	// OutputMaxBytes of the output stream.
	OutputMaxBytes int64
	// OutputMaxAge is how long output is kept; 0 for as long as there is room.
	OutputMaxAge time.Duration
	// Replicas of each stream, 1 on a single server.
	Replicas int
}

// Limits of single messages.
const (
	maxEventBytes  = 512 << 10
	maxOutputBytes = 256 << 10
	maxJobBytes    = 64 << 10
	maxTextBytes   = 256 << 10
	jobsBytes      = 64 << 20
	maxHeadBytes   = 2 << 10
)

// HeadsBytes bounds the bucket of heads, which has one small value per epoch.
const HeadsBytes = 4 << 20

// WeakSetting says that a stream or queue exists with a setting that the
// guarantees do not hold under.
type WeakSetting struct {
	Object  string
	Setting string
	Got     any
	Want    any
}

func (e *WeakSetting) Error() string {
	return fmt.Sprintf("%s has %s = %v, want %v; somebody has changed it: find out who and when in the server's log, "+
		"then set it back with `nats stream edit` as the administrator of CORE", e.Object, e.Setting, e.Got, e.Want)
}

// BrokenStream says that the audited stream has lost or lacks messages, which
// no correct operation of a deny-delete stream can cause.
type BrokenStream struct {
	Invariant string
	State     State
}

func (e *BrokenStream) Error() string {
	return fmt.Sprintf("stream %s is damaged: %s (messages %d, sequences %d to %d, deleted %d); keep the store as it is, "+
		"compare it with the auditor's log by `banksman audit verify`, and restore a backup",
		grants.Stream, e.Invariant, e.State.Messages, e.State.First, e.State.Last, e.State.Deleted)
}

// Streams are the configurations of the streams whose loss would be one.
func (l Layout) Streams() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{l.stored(), l.output(), l.texts()}
}

// stored is the configuration of the audited stream.
func (l Layout) stored() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: grants.Stream, Subjects: []string{filterAll},
		Description: "every event of banksman, append only; read with: nats stream view " + grants.Stream,
		Retention:   jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
		MaxBytes: l.MaxBytes, MaxMsgSize: maxEventBytes, Replicas: max(l.Replicas, 1),
		DenyDelete: true, DenyPurge: true, AllowDirect: true,
		RePublish: &jetstream.RePublish{Source: filterAll, Destination: events.PrefixLive + "." + filterAll},
	}
}

// output is the configuration of the output stream: each chunk is written
// once.
func (l Layout) output() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: grants.OutputStream, Subjects: []string{events.PrefixOutput + ".>"},
		Description: "what jobs wrote, in chunks bmo.<pool>.<job>.<attempt>.<n>.<worker>",
		Retention:   jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
		DiscardNewPerSubject: true, MaxMsgsPerSubject: 1,
		MaxBytes: l.OutputMaxBytes, MaxAge: l.OutputMaxAge, MaxMsgSize: maxOutputBytes, Replicas: max(l.Replicas, 1),
		AllowDirect: true,
	}
}

// texts is the configuration of the kept texts: each is written once, and can be
// deleted for good, which nothing else can.
func (l Layout) texts() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: grants.TextStream, Subjects: []string{events.PrefixText + ".*.*"},
		Description: "words of people, bmb.<digest>.<actor>; events hold their digests, and the auditor erases what an admin orders",
		Retention:   jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
		DiscardNewPerSubject: true, MaxMsgsPerSubject: 1,
		MaxBytes: l.MaxBytes, MaxMsgSize: maxTextBytes, Replicas: max(l.Replicas, 1),
		DenyPurge: true, AllowDirect: true,
	}
}

func (l Layout) jobs() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: grants.JobsBucket, Description: "open and recent jobs, kept by the auditor; read with: nats kv get bm_jobs JOB",
		Storage: jetstream.MemoryStorage, History: 1, MaxValueSize: maxJobBytes, MaxBytes: jobsBytes, Replicas: max(l.Replicas, 1),
	}
}

// heads is the configuration of the bucket of heads: one value per log, which only a
// newer one replaces.
func (l Layout) heads() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: grants.HeadsStream, Subjects: []string{headSubject(">")},
		Description: "the newest head of each audit log that may be signed, swapped by the auditor",
		Retention:   jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
		MaxMsgsPerSubject: 1, MaxBytes: HeadsBytes, MaxMsgSize: maxHeadBytes, Replicas: max(l.Replicas, 1),
		DenyDelete: true, DenyPurge: true, AllowDirect: true,
	}
}

func queue(d grants.Durable) jetstream.ConsumerConfig {
	c := jetstream.ConsumerConfig{
		Durable: d.Name, Name: d.Name, Description: d.About,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second, MaxDeliver: -1,
		MaxAckPending: 10000, MaxWaiting: 4096,
	}
	if len(d.Filters) == 1 {
		c.FilterSubject = d.Filters[0]
	} else {
		c.FilterSubjects = d.Filters
	}
	return c
}

// Provision makes the streams and queues that are missing and checks those
// that exist. It changes nothing that exists except a max_bytes that has
// become larger and how old output may become. Only the bus's own role may. Errors: [*WeakSetting],
// [*BrokenStream].
func (c *Conn) Provision(ctx context.Context, l Layout) error {
	if l.MaxBytes <= 0 || l.OutputMaxBytes <= 0 {
		return errors.New("provision the bus: max_bytes of both streams must be set, because a full disk freezes the server")
	}
	js, err := jetstream.New(c.nc)
	if err != nil {
		return fmt.Errorf("provision the bus: %w", err)
	}
	for _, want := range l.Streams() {
		if err := ensureStream(ctx, js, want); err != nil {
			return err
		}
	}
	if _, err := js.CreateOrUpdateKeyValue(ctx, l.jobs()); err != nil {
		return fmt.Errorf("provision bucket %s: %w", grants.JobsBucket, err)
	}
	elsewhere, err := jetstream.NewWithAPIPrefix(c.nc, grants.HeadsPrefix)
	if err != nil {
		return fmt.Errorf("provision the bus: %w", err)
	}
	if err := ensureStream(ctx, elsewhere, l.heads()); err != nil {
		return err
	}
	for _, d := range grants.Durables(l.Pools) {
		if err := ensureQueue(ctx, js, d); err != nil {
			return err
		}
	}
	state, err := c.StreamState(ctx)
	if err != nil {
		return err
	}
	return c.intact(ctx, js, state)
}

// DropStream deletes a stream, for who makes it again in the same breath. Only the bus's
// own role may.
func (c *Conn) DropStream(ctx context.Context, name string) error {
	js, err := jetstream.New(c.nc)
	if err == nil {
		err = js.DeleteStream(ctx, name)
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("delete stream %s: %w", name, err)
	}
	return nil
}

// openings are the events that open epochs.
const openings = events.PrefixStored + ".epoch.*.*.opened.*"

// intact checks that nothing is missing but what the bus has let go of with an epoch: up
// to the sequence that the newest one names there may be holes, which the auditor counts.
func (c *Conn) intact(ctx context.Context, js jetstream.JetStream, state State) error {
	broken := state.Check()
	if broken == nil || state.First != 1 {
		return broken
	}
	st, found, err := c.Last(ctx, openings)
	if err != nil {
		return err
	}
	e, err := events.Open(c.cfg.Origin, st)
	p, ok := e.Payload.(*events.EpochOpened)
	if !found || err != nil || !ok {
		return broken
	}
	after, err := js.CreateConsumer(ctx, grants.Stream, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: p.Through + 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return fmt.Errorf("count the events of this epoch: %w", err)
	}
	info := after.CachedInfo()
	if err := js.DeleteConsumer(ctx, grants.Stream, info.Name); err != nil {
		return fmt.Errorf("count the events of this epoch: %w", err)
	}
	if p.Through+info.NumPending != state.Last {
		return broken
	}
	return nil
}

// Check returns a [*BrokenStream] unless the stream is whole as far as its
// state shows.
func (s State) Check() error {
	switch {
	case s.Messages > 0 && s.First != 1, s.Messages == 0 && s.Last > 0:
		return &BrokenStream{Invariant: "the first sequence is not 1", State: s}
	case s.Deleted != 0:
		return &BrokenStream{Invariant: "messages are deleted", State: s}
	case s.Messages != s.Last:
		return &BrokenStream{Invariant: "messages are missing", State: s}
	}
	return nil
}

func ensureStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) error {
	what := "provision stream " + want.Name
	st, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if _, err := js.CreateStream(ctx, want); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	got := st.CachedInfo().Config
	if err := compareStream(got, want); err != nil {
		return err
	}
	if want.MaxBytes > got.MaxBytes || want.MaxAge != got.MaxAge {
		got.MaxBytes, got.MaxAge = max(got.MaxBytes, want.MaxBytes), want.MaxAge
		if _, err := js.UpdateStream(ctx, got); err != nil {
			return fmt.Errorf("%s: change its limits: %w", what, err)
		}
	}
	return nil
}

// compareStream finds the first setting that is weaker than wanted.
func compareStream(got, want jetstream.StreamConfig) error {
	republish := func(c jetstream.StreamConfig) string {
		if c.RePublish == nil {
			return "none"
		}
		return fmt.Sprintf("%s to %s, headers only: %t", c.RePublish.Source, c.RePublish.Destination, c.RePublish.HeadersOnly)
	}
	for _, s := range []struct {
		name      string
		got, want any
		bad       bool
	}{
		{"subjects", got.Subjects, want.Subjects, !slices.Equal(got.Subjects, want.Subjects)},
		{"storage", got.Storage, want.Storage, got.Storage != want.Storage},
		{"retention", got.Retention, want.Retention, got.Retention != want.Retention},
		{"discard", got.Discard, want.Discard, got.Discard != want.Discard},
		{"discard_new_per_subject", got.DiscardNewPerSubject, want.DiscardNewPerSubject, got.DiscardNewPerSubject != want.DiscardNewPerSubject},
		{"deny_delete", got.DenyDelete, want.DenyDelete, want.DenyDelete && !got.DenyDelete},
		{"deny_purge", got.DenyPurge, want.DenyPurge, want.DenyPurge && !got.DenyPurge},
		{"allow_direct", got.AllowDirect, true, !got.AllowDirect},
		{"max_bytes", got.MaxBytes, "a limit", got.MaxBytes <= 0},
		{"max_msgs", got.MaxMsgs, "no limit", got.MaxMsgs > 0},
		{"max_age", got.MaxAge, "no limit", got.MaxAge > 0 && got.Name == grants.Stream},
		{"max_msgs_per_subject", got.MaxMsgsPerSubject, want.MaxMsgsPerSubject, max(got.MaxMsgsPerSubject, 0) != want.MaxMsgsPerSubject},
		{"replicas", got.Replicas, want.Replicas, got.Replicas < want.Replicas},
		{"no_ack", got.NoAck, false, got.NoAck},
		{"sealed", got.Sealed, false, got.Sealed},
		{"allow_rollup_hdrs", got.AllowRollup, false, got.AllowRollup},
		{"allow_msg_ttl", got.AllowMsgTTL, false, got.AllowMsgTTL},
		{"allow_msg_schedules", got.AllowMsgSchedules, false, got.AllowMsgSchedules},
		{"allow_msg_counter", got.AllowMsgCounter, false, got.AllowMsgCounter},
		{"persist_mode", got.PersistMode, "default", got.PersistMode != jetstream.DefaultPersistMode},
		{"mirror", got.Mirror != nil, false, got.Mirror != nil},
		{"sources", len(got.Sources), 0, len(got.Sources) > 0},
		{"subject_transform", got.SubjectTransform != nil, false, got.SubjectTransform != nil},
		{"republish", republish(got), republish(want), republish(got) != republish(want)},
	} {
		if s.bad {
			return &WeakSetting{Object: "stream " + got.Name, Setting: s.name, Got: s.got, Want: s.want}
		}
	}
	return nil
}

func ensureQueue(ctx context.Context, js jetstream.JetStream, d grants.Durable) error {
	want := queue(d)
	what := "provision queue " + d.Name
	cons, err := js.Consumer(ctx, grants.Stream, d.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		if _, err := js.CreateConsumer(ctx, grants.Stream, want); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	got := cons.CachedInfo().Config
	filters := got.FilterSubjects
	if got.FilterSubject != "" {
		filters = []string{got.FilterSubject}
	}
	for _, s := range []struct {
		name      string
		got, want any
		bad       bool
	}{
		{"filter_subjects", filters, d.Filters, !slices.Equal(filters, d.Filters)},
		{"ack_policy", got.AckPolicy, want.AckPolicy, got.AckPolicy != want.AckPolicy},
		{"ack_wait", got.AckWait, want.AckWait, got.AckWait != want.AckWait},
		{"max_deliver", got.MaxDeliver, want.MaxDeliver, got.MaxDeliver != want.MaxDeliver},
		{"backoff", got.BackOff, "none", len(got.BackOff) > 0},
		{"deliver_policy", got.DeliverPolicy, want.DeliverPolicy, got.DeliverPolicy != want.DeliverPolicy},
		{"headers_only", got.HeadersOnly, false, got.HeadersOnly},
	} {
		if s.bad {
			return &WeakSetting{Object: "queue " + d.Name, Setting: s.name, Got: s.got, Want: s.want}
		}
	}
	return nil
}
