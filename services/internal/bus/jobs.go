package bus

import (
	"context"
	"encoding/json/v2"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/banksman/banksman/services/internal/grants"
)

// Jobs is the key-value view of open and recent jobs that `nats kv get bm_jobs
// JOB` shows. It lives in the server's memory: after a restart of the bus it
// is empty, and the auditor, told by [Conn.Notify], puts everything again.
type Jobs struct{ conn *Conn }

// Jobs returns the view.
func (c *Conn) Jobs() *Jobs { return &Jobs{c} }

// Put sets a job's entry.
func (j *Jobs) Put(ctx context.Context, job string, value []byte) error {
	return j.store(ctx, job, &nats.Msg{Data: value})
}

// Delete removes a job's entry.
func (j *Jobs) Delete(ctx context.Context, job string) error {
	return j.store(ctx, job, &nats.Msg{Header: nats.Header{"KV-Operation": {"PURGE"}, "Nats-Rollup": {"sub"}}})
}

func (j *Jobs) store(ctx context.Context, job string, m *nats.Msg) error {
	m.Subject = "$KV." + grants.JobsBucket + "." + job
	r, err := j.conn.ask(ctx, "write the entry of job "+job, m)
	if err != nil {
		return err
	}
	var ack pubAck
	if err := json.Unmarshal(r.Data, &ack); err != nil {
		return fmt.Errorf("read the acknowledgement of job entry %s: %w", job, err)
	}
	if ack.Error != nil {
		return ack.Error.refusal(m.Subject)
	}
	return nil
}

// Get returns a job's entry.
func (j *Jobs) Get(ctx context.Context, job string) (value []byte, found bool, err error) {
	subject := j.conn.api + "DIRECT.GET." + grants.JobsStream + ".$KV." + grants.JobsBucket + "." + job
	r, err := j.conn.ask(ctx, "read the entry of job "+job, &nats.Msg{Subject: subject})
	if err != nil {
		return nil, false, err
	}
	st, end, err := readAnswer(subject, r, false)
	if err != nil || end || last(st.Header, "KV-Operation") != "" {
		return nil, false, err
	}
	return st.Data, true, nil
}
