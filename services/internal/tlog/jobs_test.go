package tlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestJobTableIsAMap compares the table with a map while it grows over many flushes and
// restarts.
func TestJobTableIsAMap(t *testing.T) {
	path := filepath.Join(memoryDir(t), jobsName)
	table, err := openJobs(disk{}, path)
	must(t, err)
	model := map[jobKey]int64{}
	rng := rand.New(rand.NewPCG(3, 3))
	for leaf := int64(1); leaf <= 6000; leaf++ {
		key := keyOf(fmt.Sprint(rng.IntN(2000)))
		want, ok := model[key]
		if !ok {
			want = -1
		}
		got, err := table.get(key)
		must(t, err)
		if got != want {
			t.Fatalf("leaf %d: %d, want %d", leaf, got, want)
		}
		table.put(key, leaf)
		model[key] = leaf
		if leaf%73 == 0 {
			must(t, table.flush(leaf))
		}
		if leaf%730 == 0 {
			must(t, table.close())
			table, err = openJobs(disk{}, path)
			must(t, err)
			if table.covers != leaf {
				t.Fatalf("it covers %d of %d leaves", table.covers, leaf)
			}
		}
	}
	must(t, table.flush(6001))
	all, err := table.all()
	must(t, err)
	if !maps.Equal(all, model) {
		t.Fatalf("%d jobs, want %d", len(all), len(model))
	}
	must(t, table.close())
}

// TestFullPagesOverflow gives all keys one home page.
func TestFullPagesOverflow(t *testing.T) {
	jobs := map[jobKey]int64{}
	for i := range int64(40) {
		var key jobKey
		binary.BigEndian.PutUint64(key[8:], uint64(i))
		jobs[key] = i
	}
	path := filepath.Join(t.TempDir(), jobsName)
	must(t, os.WriteFile(path, tableOf(jobs, 40), 0o600))
	table, err := openJobs(disk{}, path)
	must(t, err)
	defer table.close()
	for key, want := range jobs {
		if got, err := table.get(key); err != nil || got != want {
			t.Errorf("%x: %d, %v", key, got, err)
		}
	}
	if got, err := table.get(keyOf("another")); err != nil || got != -1 {
		t.Errorf("a job there is not: %d, %v", got, err)
	}
}

// TestDamagedJobTableIsFoundAndRebuilt damages the table under a running log: nothing is
// logged with a wrong link, and opening the folder again repairs it.
func TestDamagedJobTableIsFoundAndRebuilt(t *testing.T) {
	signer, _ := keys(t, testOrigin)
	want := sealedLog(t, t.TempDir(), 40)
	dir := sealedDir(t, 20)
	l, err := Open(dir, signer, FileLock(dir))
	must(t, err)
	b := files(t, dir)[jobsName]
	for i := page_bytes; i < len(b); i += page_bytes {
		b[i] ^= 1
	}
	f, err := os.OpenFile(filepath.Join(dir, jobsName), os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(b, 0)
	must(t, err)
	must(t, f.Close())
	if _, err := feedAndSeal(l, 40); !errors.Is(err, ErrDamaged) {
		t.Fatalf("append with a damaged table: %v", err)
	}
	must(t, l.Close())
	l, err = Open(dir, signer, FileLock(dir))
	must(t, err)
	if !l.Recovery().Rebuilt {
		t.Error("the table was not rebuilt")
	}
	cp, err := feedAndSeal(l, 40)
	must(t, err)
	if cp.Root != want.Root {
		t.Error("another root")
	}
	must(t, l.Close())
	wantClean(t, dir)
}
