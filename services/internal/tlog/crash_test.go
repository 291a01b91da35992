package tlog

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

const (
	crashDirEnv = "TLOG_TEST_CRASH_DIR"
	crashEnd    = 200_000 // no child gets that far
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirEnv); dir != "" {
		if err := appendUntilKilled(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(callsDirEnv); dir != "" {
		if err := liveShortly(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// appendUntilKilled feeds the log in uneven batches and prints the size of each head.
func appendUntilKilled(dir string) error {
	tb := &testing.T{}
	signer, _ := keys(tb, testOrigin)
	l, err := Open(dir, signer, FileLock(dir))
	if errors.Is(err, ErrNoHead) {
		l, err = Create(dir, genesis(), signer, FileLock(dir))
	}
	if err != nil {
		return err
	}
	fmt.Println("open", l.SealedSize())
	for batch := uint64(1); l.LastSeq() < crashEnd; batch = batch%300*2 + 1 {
		cp, err := feedAndSeal(l, l.LastSeq()+batch)
		if err != nil {
			return err
		}
		fmt.Println("sealed", cp.Size)
	}
	return nil
}

// TestKilledAgainAndAgain kills the writer without warning after a random number of
// heads. No head that it showed is ever lost, and the log is the same as one that was
// never killed.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	signer, _ := keys(t, testOrigin)
	rng := rand.New(rand.NewPCG(7, 7))
	shown := int64(0)
	kills, heads := 20, 25
	if os.Getenv("BANKSMAN_SOAK") == "1" {
		kills, heads = 300, 6
	}
	for range kills {
		shown = killOnce(t, dir, 1+rng.IntN(heads), shown)
	}
	l, err := Open(dir, signer, FileLock(dir))
	must(t, err)
	if l.SealedSize() < shown {
		t.Fatalf("sealed %d, shown %d", l.SealedSize(), shown)
	}
	end := l.LastSeq() + 5
	got, err := feedAndSeal(l, end)
	must(t, err)
	must(t, l.Close())
	wantClean(t, dir)
	if want := sealedLog(t, t.TempDir(), end); got.Root != want.Root {
		t.Errorf("another root than without kills")
	}
	t.Logf("%d leaves", got.Size)
}

// killOnce starts the writer, reads n heads from it and kills it.
func killOnce(t *testing.T, dir string, n int, shown int64) int64 {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDirEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		what, size, _ := strings.Cut(lines.Text(), " ")
		now, err := strconv.ParseInt(size, 10, 64)
		if err != nil || now < shown {
			t.Errorf("%s %s after a head of %d was shown", what, size, shown)
		}
		shown = now
		if i == n {
			must(t, cmd.Process.Kill())
		}
	}
	cmd.Wait() // the kill is its error
	return shown
}
