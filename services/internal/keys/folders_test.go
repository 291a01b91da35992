package keys

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestMakePrivateDir(t *testing.T) {
	dir := folder(t)
	deep := filepath.Join(dir, "a", "b", "c")
	for range 2 { // the second time it is there already
		if err := MakePrivateDir(deep); err != nil {
			t.Fatal(err)
		}
	}
	for _, made := range []string{deep, filepath.Dir(deep), filepath.Join(dir, "a")} {
		wantMode(t, made, 0o700)
	}
	t.Chdir(dir)
	if err := MakePrivateDir("relative/sub"); err != nil {
		t.Error(err)
	}
}

func TestMakePrivateDirRefusesWhatOthersReach(t *testing.T) {
	dir := folder(t)
	target := filepath.Join(dir, "target")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	wantErr(t, MakePrivateDir(link), ErrUnsafeFolder, link, "symbolic link")
	if err := MakePrivateDir(filepath.Join(link, "below")); err != nil {
		t.Errorf("a link of one's own above the folder: %v", err)
	}
	wantErr(t, MakePrivateDir(mustWrite(t, filepath.Join(dir, "file"), "", 0o600)), ErrUnsafeFolder, "not a folder")
	wantErr(t, MakePrivateDir(filepath.Join(dir, "file", "below")), syscall.ENOTDIR)

	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []fs.FileMode{0o755, 0o710, 0o701} {
		os.Chmod(open, mode)
		wantErr(t, MakePrivateDir(open), ErrUnsafeFolder, "chmod 700 "+open)
		wantMode(t, open, mode)
	}
	for _, mode := range []fs.FileMode{0o770, 0o707, 0o777} {
		os.Chmod(open, mode)
		below := filepath.Join(open, "sub", "below")
		wantErr(t, MakePrivateDir(below), ErrUnsafeFolder, open, "chmod go-w "+open)
		wantErr(t, WriteSecret(filepath.Join(open, "secret"), nil), ErrUnsafeFolder)
		wantAlone(t, open) // the check came before the making
	}
	os.Chmod(open, 0o777|fs.ModeSticky)
	if err := MakePrivateDir(filepath.Join(open, "sub")); err != nil {
		t.Errorf("below a sticky folder: %v", err)
	}
}

// A path that is safe by its letters may lead through an unsafe folder.
func TestMakePrivateDirFollowsLinksLikeTheKernel(t *testing.T) {
	dir := folder(t)
	shared := filepath.Join(dir, "shared")
	for _, path := range []string{shared, filepath.Join(shared, "mine")} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	os.Chmod(shared, 0o777)
	for name, target := range map[string]string{
		"absolute": filepath.Join(shared, "mine"),
		"relative": "shared/mine",
		"dotted":   "../" + filepath.Base(dir) + "/./shared/mine",
		"twice":    "absolute",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"absolute", "relative", "dotted", "twice"} {
		wantErr(t, MakePrivateDir(filepath.Join(dir, name, "keys")), ErrUnsafeFolder, shared)
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	if err := MakePrivateDir(filepath.Join(dir, "loop", "keys")); err == nil {
		t.Error("a loop of links is accepted")
	}
}

// foreign is the description of a file of somebody else; making a real one
// takes root.
type foreign struct{ mode fs.FileMode }

func (f foreign) Name() string       { return "foreign" }
func (f foreign) Size() int64        { return 0 }
func (f foreign) Mode() fs.FileMode  { return f.mode }
func (f foreign) ModTime() time.Time { return time.Time{} }
func (f foreign) IsDir() bool        { return f.mode.IsDir() }
func (f foreign) Sys() any           { return &syscall.Stat_t{Uid: uint32(os.Geteuid() + 12345)} }

func TestFoldersOfOthersAreRefused(t *testing.T) {
	for _, mode := range []fs.FileMode{fs.ModeDir | 0o700, fs.ModeDir | fs.ModeSticky | 0o777, fs.ModeSymlink | 0o777} {
		wantErr(t, checkStep("/x", foreign{mode}), ErrUnsafeFolder, "belongs to user")
	}
	wantErr(t, requirePrivate("/x", foreign{fs.ModeDir | 0o700}), ErrUnsafeFolder, "belongs to user")
}

// list builds a stored access list of (tag, permissions, id) triples.
func list(entries ...[3]uint32) []byte {
	stored := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range entries {
		stored = binary.LittleEndian.AppendUint16(stored, uint16(e[0]))
		stored = binary.LittleEndian.AppendUint16(stored, uint16(e[1]))
		stored = binary.LittleEndian.AppendUint32(stored, e[2])
	}
	return stored
}

const (
	nobody    = 1<<32 - 1 // the id of an entry that has none
	otherUser = 4242
)

// serviceList is what systemd gives a credential: root's file, one user may read.
func serviceList(user uint32) []byte {
	return list([3]uint32{aclUserObj, 4, nobody}, [3]uint32{aclUser, 4, user}, [3]uint32{aclGroupObj, 0, nobody},
		[3]uint32{aclMask, 4, nobody}, [3]uint32{aclOther, 0, nobody})
}

func TestExposedBy(t *testing.T) {
	const self = 1000
	for name, c := range map[string]struct {
		list []byte
		want bool
	}{
		"only self":      {serviceList(self), false},
		"only root":      {serviceList(0), false},
		"somebody else":  {serviceList(otherUser), true},
		"owning group":   {list([3]uint32{aclGroupObj, 4, nobody}), true},
		"a named group":  {list([3]uint32{aclGroup, 4, 7}), true},
		"everybody":      {list([3]uint32{aclOther, 4, nobody}), true},
		"unknown tag":    {list([3]uint32{0x40, 0, nobody}), true},
		"empty":          {nil, true},
		"cut":            {serviceList(self)[:15], true},
		"other version":  {append([]byte{3, 0, 0, 0}, serviceList(self)[4:]...), true},
		"grants nothing": {list([3]uint32{aclUser, 0, otherUser}, [3]uint32{aclGroup, 0, 7}), false},
	} {
		if got := exposedBy(c.list, self); got != c.want {
			t.Errorf("%s: exposed is %v, want %v", name, got, c.want)
		}
	}
}

func FuzzExposedBy(f *testing.F) {
	f.Add(serviceList(1000))
	f.Add([]byte{2, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, stored []byte) {
		if exposedBy(stored, 1000) {
			return
		}
		// Adding somebody to an acceptable list makes it unacceptable.
		if !exposedBy(append(stored, list([3]uint32{aclUser, 4, otherUser})[4:]...), 1000) {
			t.Error("an entry for another user goes unnoticed")
		}
	})
}
