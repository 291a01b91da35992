package imported

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/banksman/banksman/services/internal/redact"
)

// AgentSafe names the program whose history is read.
const AgentSafe = "agent-safe"

// Bounds of what is read.
const (
	MaxFile_bytes = 256 << 20
	maxText_bytes = 16 << 10 // of a text that a job keeps
)

// ErrFormat means that a file is not in the form of that program.
var ErrFormat = errors.New("not in the form of agent-safe")

// History is what another program says about its jobs.
type History struct {
	Program string `json:"program"`
	Chain   *Chain `json:"chain"` // nil where no trail was given
	Jobs    []Job  `json:"jobs"`  // the oldest first
}

// Job is one job of another program. Banksman has neither decided nor run it.
type Job struct {
	ID        string    `json:"job"`
	Imported  string    `json:"imported"` // the program that says so
	Argv      []string  `json:"argv"`
	Cwd       string    `json:"cwd"`
	Status    string    `json:"status"`
	Approval  string    `json:"approval"`
	DecidedBy string    `json:"decided_by,omitempty"` // a label; that program knows no identities
	DecidedAt time.Time `json:"decided_at,omitzero"`
	Reason    string    `json:"reason,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	Attempts  int       `json:"attempts"`
	ExitCode  *int      `json:"exit_code,omitempty"`
	Stdout    string    `json:"stdout,omitempty"`
	Stderr    string    `json:"stderr,omitempty"`
	Error     string    `json:"error,omitempty"`
	Source    string    `json:"source,omitempty"`
	Entries   []string  `json:"entries,omitempty"`   // what the trail says, in order
	Disagrees []string  `json:"disagrees,omitempty"` // where list and trail differ
}

// listed is a job as that program's list prints it. It prints more than this.
type listed struct {
	ID         string   `json:"id"`
	Command    []string `json:"command"`
	Cwd        *string  `json:"cwd"`
	Status     string   `json:"status"`
	Approval   string   `json:"approval_status"`
	CreatedAt  *float64 `json:"created_at"`
	Attempts   int      `json:"attempts"`
	DecidedBy  *string  `json:"decided_by"`
	DecidedAt  *float64 `json:"decided_at"`
	Reason     *string  `json:"decision_reason"`
	Source     *string  `json:"source"`
	ErrorClass *string  `json:"error_class"`
	Result     *struct {
		Code   *int    `json:"returncode"`
		Stdout *string `json:"stdout"`
		Stderr *string `json:"stderr"`
		Error  *string `json:"error"`
	} `json:"result"`
}

// Read makes the history of a trail and a list, either of which may be nil.
func Read(trail, list []byte) (History, error) {
	h := History{Program: AgentSafe}
	if trail == nil && list == nil {
		return h, fmt.Errorf("%w: neither a trail nor a list was given", ErrFormat)
	}
	r := reader{rules: redact.New(), at: map[string]int{}, alone: map[string]bool{}}
	if list != nil {
		var jobs []listed
		if err := json.Unmarshal(list, &jobs); err != nil {
			return h, fmt.Errorf("%w: the list: %w", ErrFormat, err)
		}
		for i, l := range jobs {
			if _, twice := r.at[l.ID]; l.ID == "" || twice {
				return h, fmt.Errorf("%w: job %d of the list has no id of its own", ErrFormat, i+1)
			}
			r.at[l.ID] = len(r.jobs)
			r.jobs = append(r.jobs, r.fromList(l))
		}
	}
	if trail != nil {
		entries, chain := readChain(trail)
		h.Chain = &chain
		if len(entries) == 0 && chain.Fault != "" {
			return h, fmt.Errorf("%w: line %d of the trail: %s", ErrFormat, chain.Line, chain.Fault)
		}
		for _, e := range entries {
			r.take(e, list != nil)
		}
	}
	slices.SortStableFunc(r.jobs, func(a, b Job) int { return a.Created.Compare(b.Created) })
	h.Jobs = r.jobs
	if h.Jobs == nil {
		h.Jobs = []Job{}
	}
	return h, nil
}

// reader collects jobs.
type reader struct {
	rules *redact.Rules
	jobs  []Job
	at    map[string]int  // place in jobs
	alone map[string]bool // the trail alone has it
}

// clean keeps secrets and endless texts out.
func (r *reader) clean(s *string) string {
	if s == nil {
		return ""
	}
	text := string(r.rules.Bytes([]byte(*s)))
	if len(text) > maxText_bytes {
		text = text[len(text)-maxText_bytes:]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

func (r *reader) cleanAll(argv []string) []string {
	out := make([]string, len(argv))
	for i := range argv {
		out[i] = r.clean(&argv[i])
	}
	return out
}

func moment(seconds *float64) time.Time {
	if seconds == nil || *seconds < 0 || *seconds > 1e11 {
		return time.Time{}
	}
	return time.UnixMilli(int64(*seconds * 1000)).UTC()
}

func (r *reader) fromList(l listed) Job {
	j := Job{
		ID: l.ID, Imported: AgentSafe, Argv: r.cleanAll(l.Command), Cwd: r.clean(l.Cwd), Status: l.Status, Approval: l.Approval, DecidedBy: r.clean(l.DecidedBy),
		DecidedAt: moment(l.DecidedAt), Reason: r.clean(l.Reason), Created: moment(l.CreatedAt), Attempts: l.Attempts, Source: r.clean(l.Source), Error: r.clean(l.ErrorClass),
	}
	if res := l.Result; res != nil {
		j.ExitCode, j.Stdout, j.Stderr = res.Code, r.clean(res.Stdout), r.clean(res.Stderr)
		if res.Error != nil {
			j.Error = r.clean(res.Error)
		}
	}
	return j
}
