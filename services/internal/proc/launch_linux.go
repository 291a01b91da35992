package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lowestKeptFD is where descriptors live that exec must find under their number: above the ones that fork shuffles.
const lowestKeptFD = 100

// A launch is a program that has been opened and checked, and is ready to be executed.
type launch struct {
	job     *job
	program *os.File // the approved bytes
	dir     *os.File // the working directory
	stat    unix.Stat_t
	script  bool
	bound   string
}

// prepare opens and checks what the job names. The result is closed by the caller.
func prepare(j *job) (*launch, error) {
	l := &launch{job: j}
	err := l.openDir()
	if err == nil {
		err = l.openProgram()
	}
	if err == nil {
		err = checkFiles(j.Files)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *launch) close() {
	if l.program != nil {
		l.program.Close()
	}
	if l.dir != nil {
		l.dir.Close()
	}
}

// openDir opens the working directory and refuses a path that leads elsewhere than it says.
func (l *launch) openDir() error {
	path := l.job.Dir
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &StartError{Code: codeOf(err, CodeNoDir), Path: path, Detail: "open the working directory: " + reason(err)}
	}
	l.dir = keep(fd, path)
	real, err := os.Readlink(fdPath(l.dir))
	if err != nil {
		return &StartError{Code: CodeSystem, Path: path, Detail: "read where the working directory is: " + reason(err)}
	}
	if real != path {
		return &StartError{Code: CodeDirChanged, Path: path, Detail: "the working directory's path leads through a symlink to " + real}
	}
	return nil
}

// openProgram opens the program, hashes it, and decides how it will be tied to its digest.
func (l *launch) openProgram() error {
	file, err := openRegular(l.job.Path, CodeNoProgram)
	if err != nil {
		var start *StartError
		if errors.As(err, &start) && start.Code == CodeNotRegular {
			start.Code = CodeNotExecutable
		}
		return err
	}
	l.program = keep(takeFD(file), l.job.Path)
	if err := unix.Fstat(int(l.program.Fd()), &l.stat); err != nil {
		return &StartError{Code: CodeSystem, Path: l.job.Path, Detail: "stat: " + err.Error()}
	}
	head := make([]byte, 2)
	n, _ := l.program.ReadAt(head, 0)
	l.script = isScript(head[:n])
	if l.job.ExpectSHA256 == "" {
		return nil
	}
	l.bound = BoundFD
	switch {
	case l.script:
		l.bound = BoundChecked
	case l.job.Sealed:
		l.bound = BoundSealed
		if err := l.seal(); err != nil {
			return err
		}
	}
	return l.checkDigest()
}

func (l *launch) checkDigest() error {
	got, _, err := digestOpen(l.program, l.job.Path)
	if err != nil {
		return err
	}
	return compareDigest(l.job.Path, l.job.ExpectSHA256, got)
}

// seal replaces the opened program by a copy in memory that nobody can write to.
func (l *launch) seal() error {
	fail := func(what string, err error) error {
		return &StartError{Code: CodeSystem, Path: l.job.Path, Detail: what + " for a sealed copy: " + reason(err)}
	}
	fd, err := unix.MemfdCreate(filepath.Base(l.job.Path), unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // kernels before 6.3 do not know MFD_EXEC and make every memory file executable
		fd, err = unix.MemfdCreate(filepath.Base(l.job.Path), unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return fail("make a memory file", err)
	}
	copied := keep(fd, l.job.Path)
	if _, err := io.Copy(copied, io.NewSectionReader(l.program, 0, MaxDigestBytes+1)); err != nil {
		copied.Close()
		return fail("copy", err)
	}
	l.program.Close()
	l.program = copied
	seals := unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(copied.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return fail("seal", err)
	}
	return nil
}

// exec starts the program. It must run on the thread that the steward locked, which the kernel takes for the tracer.
func (l *launch) exec(stdio []*os.File, inside bool, stop bool) (int, error) {
	path := fdPath(l.program)
	if l.script {
		var err error
		if path, err = l.scriptPath(); err != nil {
			return 0, err
		}
	}
	attr := &syscall.ProcAttr{
		Dir:   fdPath(l.dir),
		Env:   environment(l.job.Env, l.job.Marker),
		Files: []uintptr{stdio[0].Fd(), stdio[1].Fd(), stdio[2].Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, Ptrace: stop},
	}
	if inside {
		if err := nest(attr.Sys, syscall.CLONE_NEWUSER|syscall.CLONE_NEWNS); err != nil {
			return 0, err
		}
	}
	if u := l.job.User; u != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	syscall.Umask(l.job.Umask)
	if inside && stop {
		// The descriptor leads into the steward's mounts, in which a program in namespaces of its own could not find out
		// where it is. The path is followed in its own ones, and what it has led to is compared before the program runs.
		attr.Dir = l.job.Dir
	}
	pid, err := syscall.ForkExec(path, l.job.Argv, attr)
	if errors.Is(err, syscall.EACCES) && attr.Dir == l.job.Dir { // a user who may be there, but not go there
		attr.Dir = fdPath(l.dir)
		pid, err = syscall.ForkExec(path, l.job.Argv, attr)
	}
	if err == nil {
		return pid, nil
	}
	if attr.Dir == l.job.Dir {
		if moved := l.sameDir(l.job.Dir); moved != nil {
			return 0, moved
		}
	}
	return 0, l.execError(err)
}

// sameDir makes sure that a path leads to the folder that was opened.
func (l *launch) sameDir(path string) error {
	var opened, now unix.Stat_t
	err := errors.Join(unix.Fstat(int(l.dir.Fd()), &opened), unix.Stat(path, &now))
	if err == nil && opened.Dev == now.Dev && opened.Ino == now.Ino {
		return nil
	}
	detail := "the path led to another folder when the program was started"
	if err != nil {
		detail = "look whether it is still the same: " + err.Error()
	}
	return &StartError{Code: CodeDirChanged, Path: l.job.Dir, Detail: detail}
}

// scriptPath is the path by which a script is executed: the one by which it was found, if that still leads to it.
func (l *launch) scriptPath() (string, error) {
	if l.job.Found == "" || l.job.Found == l.job.Path {
		return l.job.Path, nil
	}
	real, err := filepath.EvalSymlinks(l.job.Found)
	if err != nil || real != l.job.Path {
		return "", &StartError{Code: CodeDigestChanged, Path: l.job.Found, Want: l.job.Path, Got: real,
			Detail: "the path by which the program was found leads elsewhere now"}
	}
	return l.job.Found, nil
}

func (l *launch) execError(err error) error {
	start := &StartError{Code: CodeSystem, Path: l.job.Path, Detail: "exec: " + err.Error()}
	switch {
	case errors.Is(err, syscall.ENOENT):
		start.Code = CodeNoInterpreter
		start.Detail = "exec: the interpreter that its first line or its header names does not exist"
	case errors.Is(err, syscall.EPERM) && l.job.User != nil:
		start.Detail = fmt.Sprintf("exec as user %d: %s; only root may switch users", l.job.User.UID, err)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ETXTBSY):
		start.Code = CodeNotExecutable
	case errors.Is(err, syscall.ENOEXEC):
		start.Code = CodeNotExecutable
		start.Detail = "exec: neither a binary for this machine nor a script with a #! line"
	case errors.Is(err, syscall.E2BIG):
		start.Code = CodeTooLarge
		start.Detail = fmt.Sprintf("exec: arguments and environment are larger than the kernel takes (a single one may have %d bytes); hand long text over by stdin or a file", 32*os.Getpagesize()-1)
	}
	return start
}

// recheck is the look after exec. A change that leaves the file's inode and change time alone is not possible.
func (l *launch) recheck() error {
	if l.job.ExpectSHA256 != "" && l.bound != BoundSealed {
		var now unix.Stat_t
		if err := unix.Fstat(int(l.program.Fd()), &now); err != nil || changed(&now, &l.stat) {
			if err := l.checkDigest(); err != nil {
				return err
			}
		}
		if l.script {
			if err := l.recheckScript(); err != nil {
				return err
			}
		}
	}
	return checkFiles(l.job.Files)
}

// recheckScript makes sure that the path still names the file that was hashed.
func (l *launch) recheckScript() error {
	path, err := l.scriptPath()
	if err != nil {
		return err
	}
	var now unix.Stat_t
	if err := unix.Stat(path, &now); err == nil && !changed(&now, &l.stat) {
		return nil
	}
	return checkFiles([]FileDigest{{Path: path, SHA256: l.job.ExpectSHA256}})
}

func changed(a, b *unix.Stat_t) bool {
	return a.Dev != b.Dev || a.Ino != b.Ino || a.Ctim != b.Ctim || a.Mtim != b.Mtim || a.Size != b.Size
}

func checkFiles(files []FileDigest) error {
	for _, file := range files {
		got, _, err := DigestFile(file.Path)
		if err != nil {
			var start *StartError
			if errors.As(err, &start) && start.Code == CodeNoProgram {
				return &StartError{Code: CodeDigestChanged, Path: file.Path, Want: file.SHA256, Got: "nothing", Detail: start.Detail}
			}
			return err
		}
		if err := compareDigest(file.Path, file.SHA256, got); err != nil {
			return err
		}
	}
	return nil
}

func compareDigest(path, want, got string) error {
	if strings.EqualFold(want, got) {
		return nil
	}
	return &StartError{Code: CodeDigestChanged, Path: path, Want: want, Got: got, Detail: "the content is not the approved one; propose again"}
}

// cpuGrace_s is the processor time between SIGXCPU and KILL.
const cpuGrace_s = 2

// apply sets the limits of a process that has not run yet.
func (r *Rlimits) apply(pid int) error {
	for _, limit := range []struct {
		resource int
		value    uint64
		set      bool
	}{
		{unix.RLIMIT_NOFILE, r.OpenFiles, r.OpenFiles > 0},
		{unix.RLIMIT_NPROC, r.Processes, r.Processes > 0},
		{unix.RLIMIT_FSIZE, r.FileSizeBytes, r.FileSizeBytes > 0},
		{unix.RLIMIT_AS, r.AddressSpaceBytes, r.AddressSpaceBytes > 0},
		{unix.RLIMIT_CPU, r.CPUSeconds, r.CPUSeconds > 0},
		{unix.RLIMIT_CORE, 0, r.NoCoreDumps},
	} {
		if !limit.set {
			continue
		}
		value := &unix.Rlimit{Cur: limit.value, Max: limit.value}
		if limit.resource == unix.RLIMIT_CPU {
			value.Max += cpuGrace_s // SIGXCPU says what it was; KILL would not
		}
		if err := unix.Prlimit(pid, limit.resource, value, nil); err != nil {
			return fmt.Errorf("set resource limit %d to %d: %w", limit.resource, limit.value, err)
		}
	}
	return nil
}

// keep moves a descriptor to a high number and wraps it.
func keep(fd int, name string) *os.File {
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, lowestKeptFD)
	if err != nil {
		return os.NewFile(uintptr(fd), name)
	}
	unix.Close(fd)
	return os.NewFile(uintptr(high), name)
}

// takeFD duplicates the descriptor of a file and closes the file.
func takeFD(file *os.File) int {
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

func fdPath(file *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(file.Fd())) }
