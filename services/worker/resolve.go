package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/proc"
)

// maxInterpreters is how many scripts may name a script as their interpreter,
// the kernel's own bound.
const maxInterpreters = 4

// sight is what this worker sees of a job's files.
type sight struct {
	resolved events.JobResolved
	decision policy.Decision // with the resolution
	found    string          // path by which the program was found, symlinks unresolved
}

// look finds what would run, under the policy as it is at a moment of the stream's
// time. A change that is not nil says why nothing would; the sight is then
// incomplete.
func look(j lifecycle.Job, p *policy.Policy, search string, at time.Time) (sight, *change) {
	s := sight{resolved: events.JobResolved{Proposal: j.ProposalDigest, Policy: p.Digest()}}
	cwd, err := realDir(j.Proposal.Cwd)
	if err != nil {
		return s, missing(err)
	}
	s.resolved.Cwd = cwd
	found, program, err := proc.Lookup(j.Proposal.Argv[0], cwd, search)
	if err != nil {
		return s, missing(err)
	}
	s.found = found
	if s.resolved.Program, err = digest(0, program); err != nil {
		return s, missing(err)
	}
	inner := search
	if own, ok := j.Proposal.Env["PATH"]; ok {
		inner = own // what env looks through, once it runs
	}
	if s.resolved.Files, err = interpreters(program, cwd, inner); err != nil {
		return s, missing(err)
	}
	s.decision = p.Assess(request(j, cwd, program, at))
	marked := s.decision.CodeArgs
	if j.Resolution != nil {
		for _, f := range j.Resolution.Files {
			if f.Arg > 0 && !slices.Contains(marked, f.Arg) {
				marked = append(slices.Clone(marked), f.Arg)
			}
		}
	}
	files, err := arguments(j.Proposal.Argv, cwd, marked)
	if err != nil {
		return s, missing(err)
	}
	s.resolved.Files = append(s.resolved.Files, files...)
	return s, nil
}

// surround adds what the worker itself gives to a job.
func (c *Config) surround(r *events.JobResolved) {
	r.UnsafeSharedUser = !c.Hide
	r.EnvPass, r.SearchPath = append([]string{}, c.EnvPass...), append([]string{}, c.Path...)
	slices.Sort(r.EnvPass)
}

// realDir resolves the working directory.
func realDir(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(real); err == nil && info.IsDir() {
			return real, nil
		}
	}
	detail := "it is no folder"
	if err != nil {
		detail = cause(err)
	}
	return "", &proc.StartError{Code: proc.CodeNoDir, Path: dir, Detail: detail}
}

func digest(arg int, path string) (events.FileDigest, error) {
	sum, size, err := proc.DigestFile(path)
	if err != nil {
		return events.FileDigest{}, err
	}
	return events.FileDigest{Arg: arg, Path: path, SHA256: sum, SizeBytes: size}, nil
}

// interpreters follows the #! lines from a program on.
func interpreters(program, cwd, search string) ([]events.FileDigest, error) {
	var out []events.FileDigest
	queue := []string{program}
	for range maxInterpreters {
		if len(queue) == 0 {
			break
		}
		in, err := proc.ReadInterpreter(queue[0], cwd, search)
		queue = queue[1:]
		if err != nil {
			return nil, err
		}
		if in == nil {
			continue
		}
		for _, path := range []string{in.Path, in.ProgramPath} {
			if path == "" || slices.ContainsFunc(out, func(f events.FileDigest) bool { return f.Path == path }) {
				continue
			}
			f, err := digest(-1, path)
			if err != nil {
				return nil, err
			}
			out, queue = append(out, f), append(queue, path)
		}
	}
	return out, nil
}

// arguments digests the marked arguments that name regular files.
func arguments(argv []string, cwd string, marked []int) ([]events.FileDigest, error) {
	var out []events.FileDigest
	for _, i := range slices.Sorted(slices.Values(marked)) {
		if i < 1 || i >= len(argv) || argv[i] == "" {
			continue
		}
		path := argv[i]
		if !filepath.IsAbs(path) {
			path = filepath.Join(cwd, path)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue // no file, so nothing to pin; appearing later is a change
		}
		f, err := digest(i, real)
		switch {
		case errors.Is(err, &proc.StartError{Code: proc.CodeNotRegular}), errors.Is(err, &proc.StartError{Code: proc.CodeNoProgram}):
			continue
		case err != nil:
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// missing turns a failed look-up into the ground of a decline.
func missing(err error) *change {
	var start *proc.StartError
	if !errors.As(err, &start) {
		return &change{proc.CodeSystem, err.Error()}
	}
	reason := fmt.Sprintf("%s: %s", start.Path, sentence(start.Code))
	if start.Detail != "" {
		reason += " (" + start.Detail + ")"
	}
	return &change{start.Code, reason}
}

func sentence(code string) string {
	switch code {
	case proc.CodeNoProgram:
		return "no such program on this worker"
	case proc.CodeNotExecutable:
		return "the program cannot be executed on this worker"
	case proc.CodeNoInterpreter:
		return "the script's interpreter is not on this worker"
	case proc.CodeNoDir:
		return "no such working directory on this worker"
	case proc.CodeTooLarge:
		return "the file is too large to take its digest"
	case proc.CodeNotRegular:
		return "not a regular file"
	}
	return "this worker cannot look it up"
}

func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
