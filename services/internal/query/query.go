// Package query names the questions that roles answer each other, and their
// shapes.
//
// # What it guarantees
//
// A question is a request on a subject below bmq and stores nothing. Answers are
// views: whoever decides something reads the stream instead.
//
// # What can go wrong
//
// The answering role may be away; the asker gets an error that says which.
package query

import (
	"context"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/view"
)

// Subjects of the questions.
const (
	Get    = "bmq.jobs.get"     // GetRequest -> view.Detail
	Jobs   = "bmq.jobs.list"    // List -> view.List
	Ready  = "bmq.ready"        // + "." + pool: ReadyRequest -> ReadyJobs
	Audit  = "bmq.audit.status" // nothing -> AuditStatus
	Assess = "bmq.assess"       // AssessRequest -> Assessment
)

// GetRequest asks for one job by id or unique prefix.
type GetRequest struct {
	Job string `json:"job"`
}

// List asks for jobs, newest first.
type List struct {
	Status []lifecycle.Status `json:"status,omitempty"` // empty for all
	Pool   string             `json:"pool,omitempty"`
	From   string             `json:"from,omitempty"`   // a proposer, as in "agent:local"
	Limit  int                `json:"limit,omitempty"`  // 0 for the default of 200; at most 1000
	Before string             `json:"before,omitempty"` // a job id: list those older than it
}

// ReadyRequest asks for jobs that may be started now.
type ReadyRequest struct {
	Limit int `json:"limit,omitempty"`
}

// ReadyJobs is the answer: ids, oldest first.
type ReadyJobs struct {
	Jobs []string `json:"jobs"`
}

// AuditStatus is where the auditor stands.
type AuditStatus struct {
	Epoch      int       `json:"epoch"`
	Size       int64     `json:"size"`
	Root       string    `json:"root"`
	ThroughSeq uint64    `json:"through_seq"`
	LastSeq    uint64    `json:"last_seq"` // last event read
	SealedAt   time.Time `json:"sealed_at,omitzero"`
	Dispatch   string    `json:"dispatch"`
	Violations int       `json:"violations"`
	Gaps       int       `json:"gaps"`
	Bytes      int64     `json:"bytes,omitzero"`     // that the stream holds
	MaxBytes   int64     `json:"max_bytes,omitzero"` // that it may hold; 0 when the stream does not say
	Faults     []Fault   `json:"faults,omitempty"`   // why dispatch is closed
}

// Fault is a reason why dispatch is closed.
type Fault struct {
	Code   string `json:"code"`
	Seq    uint64 `json:"seq,omitzero"` // first missing sequence of a gap, else the event that states the fault; 0 for none
	To     uint64 `json:"to,omitzero"`  // last missing sequence of a gap
	Detail string `json:"detail"`
	// Acknowledgeable says whether an admin's word opens dispatch again.
	Acknowledgeable bool   `json:"acknowledgeable"`
	Next            string `json:"next"` // what to do
}

// AssessRequest asks what policy says of a command, before any worker looked.
type AssessRequest struct {
	Argv        []string `json:"argv"`
	Cwd         string   `json:"cwd"`
	Pool        string   `json:"pool"`
	Proposer    string   `json:"proposer"`
	TimeoutS    int      `json:"timeout_s"`
	MaxAttempts int      `json:"max_attempts"`
	EnvNames    []string `json:"env_names,omitempty"`
}

// Assessment is the answer. Allow is provisional: the gate judges again what a
// worker finds.
type Assessment struct {
	Verdict string `json:"verdict"` // allow, ask or deny
	Rule    string `json:"rule,omitempty"`
	Code    string `json:"code"`
	Reason  string `json:"reason"`
	Instead string `json:"instead,omitempty"`
	Quorum  int    `json:"quorum,omitempty"`
	Policy  string `json:"policy"`
}

// Asker is the part of the bus that asks.
type Asker interface {
	Ask(ctx context.Context, subject string, request, response any) error
}

// Each calls do for every job of a list, page by page.
func Each(ctx context.Context, bus Asker, q List, do func(job string) error) error {
	for {
		var page view.List
		if err := bus.Ask(ctx, Jobs, q, &page); err != nil {
			return err
		}
		for _, j := range page.Jobs {
			if err := do(j.Job); err != nil {
				return err
			}
		}
		if !page.More || len(page.Jobs) == 0 {
			return nil
		}
		q.Before = page.Jobs[len(page.Jobs)-1].Job
	}
}
