package proc

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// MarkerVariable is the environment variable that carries [Spec.Marker].
const MarkerVariable = "BANKSMAN_MARKER"

// DefaultGrace is the time between TERM and KILL where a [Spec] names none.
const DefaultGrace = 5 * time.Second

// DefaultUmask is the file mode mask where a [Spec] names none.
const DefaultUmask = 0o022

// A Spec says what to run and within which limits.
type Spec struct {
	// Argv is the argument vector. Argv[0] reaches the program as it is and does not select it.
	Argv []string
	// Path is the absolute path of the program with all symlinks resolved, as [Resolve] returns it.
	Path string
	// Found is the path by which the program was found, before symlinks were resolved, and may be empty. A script is
	// started by this path so that its $0 is the proposed one; it must still lead to Path.
	Found string
	// ExpectSHA256 is the hex digest that the program must have. Empty means that it is not checked.
	ExpectSHA256 string
	// Sealed asks for a private copy of a binary, in memory and sealed against writing, which is then hashed and executed.
	// It needs ExpectSHA256 and does nothing for a script.
	Sealed bool
	// Files are further files that must have the named content just before and just after exec.
	Files []FileDigest
	// Dir is the absolute working directory with all symlinks resolved. A path that leads through a symlink is refused,
	// because it may lead elsewhere by the time it is used.
	Dir string
	// Env is the complete environment. A marker in it is replaced by the one of this Spec.
	Env []string
	// Stdin is what the program reads; nil means end of file at once. An *os.File is handed over as it is.
	Stdin io.Reader
	// Stdout and Stderr receive the output, each from one goroutine. Nil discards.
	Stdout, Stderr io.Writer
	// TimeLimit ends the tree after that time. Zero means no limit.
	TimeLimit time.Duration
	// Grace is the time between TERM and KILL. Zero means [DefaultGrace].
	Grace time.Duration
	// Until is when the tree has to be gone, unless [Process.Extend] has put it off by then; zero for no such end. The steward
	// keeps it, so that it holds while the owner is stopped, starved or frozen in a call. The program is not started less than
	// Notice before it.
	Until Moment
	// Notice is how long before Until the tree is asked to end. At Until it is killed, whatever Grace says.
	Notice time.Duration
	// StartBy is when it is too late to start the program; zero for never.
	StartBy Moment
	// Marker is a value that is unique to this run. Empty means that one is made up.
	Marker string
	// Hide are absolute folders that the program sees as empty. They must exist.
	Hide []string
	// Expose are absolute paths inside hidden folders that stay visible. They must exist.
	Expose []string
	// Reach keeps the program, by the kernel's Landlock, to a part of the file system. Nil means no such wall. It excludes
	// AllowNewPrivileges.
	Reach *Reach
	// Umask is the file mode mask. Zero means [DefaultUmask].
	Umask int
	// Rlimits are the resource limits of the program.
	Rlimits Rlimits
	// Nice lowers the program's claim on the processor, 1 to 19; zero leaves it as the owner has it.
	Nice int
	// User is whom the program runs as; nil means as the owner. Only root may name one.
	User *User
	// AllowNewPrivileges lets set-uid programs and file capabilities work inside the job.
	AllowNewPrivileges bool
}

// A FileDigest names a file and the content that it must have.
type FileDigest struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// A Reach is the part of the file system that a program may use, beside the devices that every program expects, such as
// /dev/null. All paths are absolute, without symlinks, and must exist; what lies beneath one counts as well. Where the
// kernel can (Linux 6.12), a program with a reach sends no signals and makes no connections by abstract sockets to
// processes outside its own tree, its steward among them. Sockets that have a path, and the network, are not covered.
type Reach struct {
	Read  []string `json:"read,omitempty"`  // may be read, listed and executed
	Write []string `json:"write,omitempty"` // may be changed as well
}

// A User is a numeric identity with its supplementary groups.
type User struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
}

// Rlimits are limits that the kernel enforces on each process of the job. Zero leaves a limit as the owner has it.
type Rlimits struct {
	OpenFiles         uint64 `json:"open_files,omitempty"`
	Processes         uint64 `json:"processes,omitempty"` // of the uid, not of the job
	FileSizeBytes     uint64 `json:"file_size_bytes,omitempty"`
	AddressSpaceBytes uint64 `json:"address_space_bytes,omitempty"`
	CPUSeconds        uint64 `json:"cpu_s,omitempty"`
	NoCoreDumps       bool   `json:"no_core_dumps,omitempty"`
}

// check refuses what can be seen to be wrong without touching the file system.
func (s *Spec) check() error {
	bad := func(path, format string, args ...any) error {
		return &StartError{Code: CodeBadSpec, Path: path, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(s.Argv) == 0:
		return bad(s.Path, "the argument vector is empty; give at least the program's name")
	case !cleanAbs(s.Path):
		return bad(s.Path, "the program's path is not absolute and clean; resolve it first")
	case s.Found != "" && !filepath.IsAbs(s.Found):
		return bad(s.Found, "the path by which the program was found is not absolute")
	case !cleanAbs(s.Dir):
		return bad(s.Dir, "the working directory is not absolute and clean; resolve it first")
	case s.Sealed && s.ExpectSHA256 == "":
		return bad(s.Path, "a sealed copy needs the digest that it must have")
	case s.TimeLimit < 0 || s.Grace < 0 || s.Notice < 0:
		return bad(s.Path, "a time limit, grace or notice below zero makes no sense")
	case s.Reach != nil && s.AllowNewPrivileges:
		return bad(s.Path, "a program with a reach cannot be allowed new privileges")
	case s.Umask < 0 || s.Umask > 0o777:
		return bad(s.Path, "umask %#o is outside 0 to 0777", s.Umask)
	case s.Nice < 0 || s.Nice > 19:
		return bad(s.Path, "nice %d is outside 0 to 19", s.Nice)
	case strings.ContainsRune(s.Marker, 0):
		return bad(s.Path, "the marker holds a NUL byte")
	}
	for _, list := range [][]string{s.Argv, s.Env} {
		for i, text := range list {
			if strings.ContainsRune(text, 0) {
				return bad(s.Path, "argument or variable %d holds a NUL byte, which no program can receive", i)
			}
		}
	}
	if s.Reach != nil {
		for _, path := range append(slices.Clone(s.Reach.Read), s.Reach.Write...) {
			if !cleanAbs(path) {
				return bad(path, "a path to reach is not absolute and clean")
			}
		}
	}
	for _, list := range [][]string{s.Hide, s.Expose} {
		for _, path := range list {
			if !cleanAbs(path) || path == "/" {
				return bad(path, "a path to hide or expose is not absolute and clean, or is the root")
			}
		}
	}
	return nil
}

func cleanAbs(path string) bool { return filepath.IsAbs(path) && filepath.Clean(path) == path }

// environment returns the program's environment with the marker of this run and no other marker.
func environment(env []string, marker string) []string {
	out := make([]string, 0, len(env)+1)
	for _, entry := range env {
		if !strings.HasPrefix(entry, MarkerVariable+"=") {
			out = append(out, entry)
		}
	}
	return append(out, MarkerVariable+"="+marker)
}
