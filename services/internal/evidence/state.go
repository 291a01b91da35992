package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/banksman/banksman/services/internal/tlog"
)

// directoryTag is the first line of a file that says what a state says of the job.
const directoryTag = "banksman-directory/v1"

// directoryText is such a file: the job's line of the directory, its number, and the
// hashes that lead from it to the root in the state.
func directoryText(job string, p tlog.Listed) []byte {
	b := append([]byte(directoryTag+"\n"), p.Line(job)...)
	return appendPath(fmt.Appendf(b, "index %d\n", p.Index), p.Path)
}

// parseDirectory is the strict inverse of directoryText.
func parseDirectory(job string, b []byte) (p tlog.Listed, err error) {
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	malformed := errors.New("directory malformed: want " + directoryTag + ", the line of the job, an index and hashes")
	if len(lines) < 3 {
		return p, malformed
	}
	_, last, _ := strings.Cut(lines[1], " last ")
	if _, err := fmt.Sscanf(last+" "+lines[2], "%d index %d", &p.Last, &p.Index); err != nil {
		return p, malformed
	}
	if p.Path, err = parsePath(lines[3:]); err != nil {
		return p, err
	}
	if !bytes.Equal(directoryText(job, p), b) {
		return p, malformed
	}
	return p, nil
}

// state writes what the newest state after the job's last event says of the job.
func (w *writer) state() error {
	leaf := w.place.Checkpoint.Size - 1
	for ; leaf > w.place.Leaves[len(w.place.Leaves)-1]; leaf-- {
		if tlog.StateAt(leaf) {
			break
		}
	}
	if !tlog.StateAt(leaf) {
		return nil // the job's last event is newer
	}
	e, entry, err := w.log.Entry(leaf)
	if err != nil {
		return err
	}
	directory, err := w.log.Directory(w.ctx, leaf)
	if err != nil {
		return err
	}
	p, err := directory.Prove(w.place.Job)
	if err == nil {
		err = p.Check(w.place.Job, &e)
	}
	if err != nil {
		return fmt.Errorf("the state at leaf %d: %w", leaf, err)
	}
	w.made.State = leaf
	if err := w.leafFile(leaf, "entry", entry); err != nil {
		return err
	}
	if err := w.leafFile(leaf, "directory", directoryText(w.place.Job, p)); err != nil {
		return err
	}
	return w.proof(leaf)
}

// state checks a state that the bundle holds, but for where the job's last event lies.
func (v *verifier) state(n int64, l *leaf) error {
	if l.has["headers"] || l.has["payload"] {
		return errors.New("a state has no headers and no payload")
	}
	b, err := v.file(fmt.Sprintf("%d.directory", n), 1<<20)
	if err != nil {
		return err
	}
	p, err := parseDirectory(v.job, b)
	if err != nil {
		return err
	}
	v.states = append(v.states, n)
	v.listed = p.Last
	return p.Check(v.job, &l.entry)
}

// judgeStates wants the newest state after the job's last event, where there is one, to
// say the same about the job, and no other state in the bundle.
func (v *verifier) judgeStates(last int64) {
	for _, n := range v.states {
		if n != v.newestState {
			v.integrity.Add(fmt.Sprintf("leaf %d is not the newest state after the job's last event", n))
			v.firstBad(n)
		} else if v.listed != last {
			v.completeness.Add(fmt.Sprintf("the state at leaf %d says that the job's last event is leaf %d, the bundle ends with %d", n, v.listed, last))
		}
	}
	if v.newestState > 0 && !slices.Contains(v.states, v.newestState) {
		v.completeness.Add(fmt.Sprintf("the bundle leaves out what the state at leaf %d says about the job", v.newestState))
	}
}
