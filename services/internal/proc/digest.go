package proc

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// MaxDigestBytes is the size of the largest file that is hashed.
const MaxDigestBytes = 256 << 20

// maxInterpreterLine is what the kernel reads of a #! line.
const maxInterpreterLine = 256

// DigestFile returns the SHA-256 and the size of a regular file of up to [MaxDigestBytes]. A file that is anything else, or
// grows beyond that while it is read, gives a [*StartError]. It never waits for the writer of a pipe.
func DigestFile(path string) (sha256hex string, sizeBytes int64, err error) {
	file, err := openRegular(path, CodeNoProgram)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	return digestOpen(file, path)
}

// openRegular opens path for reading and refuses everything but a regular file.
func openRegular(path, missing string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &StartError{Code: codeOf(err, missing), Path: path, Detail: "open: " + reason(err)}
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		file.Close()
		if err != nil {
			return nil, &StartError{Code: CodeSystem, Path: path, Detail: "stat: " + reason(err)}
		}
		return nil, &StartError{Code: CodeNotRegular, Path: path, Detail: "it is " + info.Mode().Type().String() + ", not a regular file"}
	}
	return file, nil
}

// digestOpen hashes an open file from its beginning.
func digestOpen(file *os.File, path string) (string, int64, error) {
	tooLarge := &StartError{Code: CodeTooLarge, Path: path, Detail: fmt.Sprintf("larger than the %d bytes that are hashed", MaxDigestBytes)}
	if info, err := file.Stat(); err == nil && info.Size() > MaxDigestBytes {
		return "", 0, tooLarge
	}
	hash := sha256.New()
	size, err := io.Copy(hash, io.NewSectionReader(file, 0, MaxDigestBytes+1))
	if err != nil {
		return "", 0, &StartError{Code: CodeSystem, Path: path, Detail: "read: " + reason(err)}
	}
	if size > MaxDigestBytes {
		return "", 0, tooLarge
	}
	return hex.EncodeToString(hash.Sum(nil)), size, nil
}

// Resolve finds the program that argv0 names, as a process in dir with the search path pathEnv would, and returns its path
// with all symlinks resolved. Unlike a shell it ignores empty and relative entries of the search path, because a program
// must not depend on the folder that an agent happens to work in.
func Resolve(argv0, dir, pathEnv string) (path string, err error) {
	_, path, err = Lookup(argv0, dir, pathEnv)
	return path, err
}

// Lookup is [Resolve] that also returns the path by which the program was found, for [Spec.Found].
func Lookup(argv0, dir, pathEnv string) (found, real string, err error) {
	for _, candidate := range candidates(argv0, dir, pathEnv) {
		real, lookErr := executable(candidate)
		if lookErr == nil {
			return candidate, real, nil
		}
		if err == nil || !errors.Is(lookErr, &StartError{Code: CodeNoProgram}) {
			err = lookErr
		}
	}
	if err == nil || errors.Is(err, &StartError{Code: CodeNoProgram}) && !strings.Contains(argv0, "/") {
		err = &StartError{Code: CodeNoProgram, Path: argv0, Detail: "not found in the search path " + pathEnv}
	}
	return "", "", err
}

func candidates(argv0, dir, pathEnv string) []string {
	switch {
	case argv0 == "":
		return nil
	case filepath.IsAbs(argv0):
		return []string{filepath.Clean(argv0)}
	case strings.Contains(argv0, "/"):
		return []string{filepath.Join(dir, argv0)}
	}
	var out []string
	for _, entry := range filepath.SplitList(pathEnv) {
		if filepath.IsAbs(entry) {
			out = append(out, filepath.Join(entry, argv0))
		}
	}
	return out
}

// executable returns the real path of a regular file that this process may execute.
func executable(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", &StartError{Code: codeOf(err, CodeNoProgram), Path: path, Detail: reason(err)}
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", &StartError{Code: codeOf(err, CodeNoProgram), Path: path, Detail: reason(err)}
	}
	if !info.Mode().IsRegular() {
		return "", &StartError{Code: CodeNotExecutable, Path: path, Detail: "it is not a regular file"}
	}
	if info.Mode().Perm()&0o111 == 0 || unix.Access(real, unix.X_OK) != nil {
		return "", &StartError{Code: CodeNotExecutable, Path: path, Detail: "no permission to execute it"}
	}
	return real, nil
}

// An Interpreter is what the #! line of a script names.
type Interpreter struct {
	Line string // without #! and surrounding blanks
	Name string // the interpreter as written
	Arg  string // the rest of the line, which the kernel passes as one argument
	Path string // the interpreter's real path
	// Program and ProgramPath are what "#!/usr/bin/env NAME" makes env run; empty otherwise.
	Program, ProgramPath string
}

// ReadInterpreter returns what the #! line of the file at path names, or nil when it has none. The search path and the
// folder decide what env finds.
func ReadInterpreter(path, dir, pathEnv string) (*Interpreter, error) {
	file, err := openRegular(path, CodeNoProgram)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head, _ := bufio.NewReaderSize(file, maxInterpreterLine).Peek(maxInterpreterLine)
	in, ok := parseInterpreter(head)
	if !ok {
		return nil, nil
	}
	if in.Path, err = executable(filepath.Clean(joined(dir, in.Name))); err != nil {
		return nil, &StartError{Code: CodeNoInterpreter, Path: path, Detail: fmt.Sprintf("its first line names %q: %v", in.Name, err)}
	}
	if in.Program == "" {
		return &in, nil
	}
	if in.ProgramPath, err = Resolve(in.Program, dir, pathEnv); err != nil {
		return nil, &StartError{Code: CodeNoInterpreter, Path: path, Detail: fmt.Sprintf("its first line makes env run %q: %v", in.Program, err)}
	}
	return &in, nil
}

func joined(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// parseInterpreter reads a #! line as the kernel does: blanks around, the interpreter up to the first blank, one argument.
func parseInterpreter(head []byte) (Interpreter, bool) {
	if !isScript(head) {
		return Interpreter{}, false
	}
	line, _, _ := strings.Cut(string(head[2:]), "\n")
	line, _, _ = strings.Cut(line, "\x00")
	line = strings.Trim(line, " \t")
	if line == "" {
		return Interpreter{}, false
	}
	in := Interpreter{Line: line, Name: line}
	if cut := strings.IndexAny(line, " \t"); cut >= 0 {
		in.Name, in.Arg = line[:cut], strings.Trim(line[cut:], " \t")
	}
	if filepath.Base(in.Name) == "env" {
		in.Program = envProgram(in.Arg)
	}
	return in, true
}

// envProgram returns the program that env runs for the argument of a #! line; with -S it may follow assignments and flags.
func envProgram(arg string) string {
	rest, split := strings.CutPrefix(arg, "-S")
	if !split {
		if strings.HasPrefix(arg, "-") {
			return ""
		}
		return arg
	}
	for _, word := range strings.Fields(rest) {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
}

func isScript(head []byte) bool { return len(head) >= 2 && head[0] == '#' && head[1] == '!' }

// codeOf turns an error of the file system into a code; missing names what a missing file means here.
func codeOf(err error, missing string) string {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.ELOOP):
		return missing
	case errors.Is(err, fs.ErrPermission):
		return CodeNotExecutable
	}
	return CodeSystem
}

// reason is the cause without the path, which the StartError already names.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
