package site

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
	"github.com/banksman/banksman/services/internal/keys"
)

// Contents is what a new site's folder is filled with beside its keys.
type Contents struct {
	Config     []byte
	Policy     []byte
	Passphrase []byte // guards the root and personal keys; nil leaves them plain
	BusURL     string
	BusHosts   []string // further names in the bus certificate
	Now        time.Time
	Options    []keys.SealOption
}

// ErrExists is a folder that holds a site or anything else, or no folder.
var ErrExists = errors.New("the folder is taken")

// maxPolicy is the largest policy in bytes that a message of the stream holds.
const maxPolicy = 512 << 10

// Exists says whether a folder holds a site.
func Exists(l Layout) bool {
	_, err := os.Stat(l.Config())
	return err == nil
}

// Create writes the site to its folder: all of it, or nothing.
func (p *Plan) Create(l Layout, c Contents) error {
	if err := Free(l); err != nil {
		return err
	}
	parent := filepath.Dir(l.Dir)
	if err := keys.MakePrivateDir(parent); err != nil {
		// A parent that others may read will do; keys refuses one that they may write.
		if info, statErr := os.Stat(parent); statErr != nil || !info.IsDir() {
			return fmt.Errorf("make a site in %s: %w", l.Dir, err)
		}
	}
	draft, err := os.MkdirTemp(parent, ".banksman-init-")
	if err != nil {
		return fmt.Errorf("make a site in %s: %w", l.Dir, err)
	}
	defer os.RemoveAll(draft)
	if err := p.fill(Layout{Dir: draft}, l, c); err != nil {
		return fmt.Errorf("make a site in %s: %w", l.Dir, err)
	}
	if err := MoveInto(draft, l.Dir); err != nil {
		return fmt.Errorf("make a site in %s: %w", l.Dir, err)
	}
	return nil
}

// MoveInto renames the draft, which replaces nothing but an empty folder, and
// makes that survive a power cut.
func MoveInto(draft, dir string) error {
	// Unlike os.Rename, the system call takes the place of an empty folder.
	if err := syscall.Rename(draft, dir); err != nil {
		return &os.LinkError{Op: "rename", Old: draft, New: dir, Err: err}
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := parent.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // EINVAL: the file system has no such notion
		return err
	}
	return nil
}

// Free refuses a folder that holds anything, and what is no folder.
func Free(l Layout) error {
	err := free(l.Dir)
	if err != nil {
		return fmt.Errorf("make a site in %s: %w", l.Dir, err)
	}
	return nil
}

func free(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%w: it is a symbolic link; name the folder itself", ErrExists)
	case !info.IsDir():
		return fmt.Errorf("%w: it is a file", ErrExists)
	}
	list, err := os.ReadDir(dir)
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("%w: it holds %s and perhaps more; name another one with --dir", ErrExists, list[0].Name())
	}
	return err
}

// fill writes everything into the draft; final is where it will lie.
func (p *Plan) fill(draft, final Layout, c Contents) error {
	for _, dir := range []string{draft.Keys(), draft.Tokens(), draft.Run(), draft.State(), filepath.Dir(draft.CA()), filepath.Join(draft.NATS(), "nats", "context")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if len(c.Policy) > maxPolicy {
		return fmt.Errorf("the policy has %d bytes, at most %d fit into an event", len(c.Policy), maxPolicy)
	}
	messages, err := p.genesis(c.Policy, c.Now)
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return p.writeKeys(draft, c) },
		func() error { return p.writeTLS(draft, c) },
		func() error { return keys.WriteSecret(draft.Token("agent", "local"), []byte(keys.NewToken()+"\n")) },
		func() error { return writeGenesis(draft.Genesis(), messages) },
		func() error { return p.writeContexts(draft, final, c.BusURL) },
		func() error { return keys.WriteSecret(draft.Policy(), c.Policy) },
		func() error { return keys.WriteSecret(draft.Config(), c.Config) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) writeKeys(l Layout, c Contents) error {
	for actor, login := range p.logins {
		if err := keys.WriteLogin(l.LoginKey(actor), login); err != nil {
			return err
		}
	}
	for actor, signer := range p.signers {
		var passphrase []byte
		if actor == p.Person {
			passphrase = c.Passphrase
		}
		if err := keys.WriteSigner(l.SignKey(actor), signer, passphrase, c.Options...); err != nil {
			return err
		}
	}
	if err := keys.WriteSigner(l.SignKey("root"), p.root, c.Passphrase, c.Options...); err != nil {
		return err
	}
	return keys.WriteCheckpointKey(l.CheckpointKey(), p.checkpoint)
}

// busCertificate is how long the bus certificate is good for.
const busCertificate = 5 * 365 * 24 * time.Hour

func (p *Plan) writeTLS(l Layout, c Contents) error {
	ca, err := keys.NewCA(p.Origin)
	if err != nil {
		return err
	}
	cert, key, err := ca.IssueServer(c.BusHosts, busCertificate)
	if err != nil {
		return err
	}
	if err := keys.WriteCA(l.CAKey(), ca); err != nil {
		return err
	}
	if err := keys.WritePublic(l.CA(), ca.CertPEM()); err != nil {
		return err
	}
	if err := keys.WritePublic(l.BusCert(), cert); err != nil {
		return err
	}
	return keys.WriteSecret(l.BusKey(), key)
}

// first is one of the first events as genesis.json holds it.
type first struct {
	Subject string              `json:"subject"`
	Header  map[string][]string `json:"header"`
	Data    string              `json:"data"`
}

func writeGenesis(path string, messages []events.Message) error {
	var list []first
	for _, m := range messages {
		list = append(list, first{Subject: m.Subject.String(), Header: m.Header, Data: string(m.Data)})
	}
	text, err := json.Marshal(list, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return keys.WriteSecret(path, text)
}

// ReadGenesis returns the site's first two events, to be appended to an empty
// stream.
func ReadGenesis(l Layout) ([]events.Message, error) {
	text, err := os.ReadFile(l.Genesis()) // no secret, and larger than one; the signatures guard it
	if err != nil {
		return nil, fmt.Errorf("read the site's first events: %w", err)
	}
	var list []first
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("read the site's first events from %s: %w", l.Genesis(), err)
	}
	var messages []events.Message
	for _, f := range list {
		s, err := events.ParseSubject(f.Subject)
		if err != nil {
			return nil, fmt.Errorf("read the site's first events from %s: %w", l.Genesis(), err)
		}
		messages = append(messages, events.Message{Subject: s, Header: f.Header, Data: []byte(f.Data)})
	}
	return messages, nil
}

// natsContext is a context file of the nats command line.
type natsContext struct {
	Description string `json:"description"`
	URL         string `json:"url"`
	NKey        string `json:"nkey"`
	CA          string `json:"ca"`
	TLSFirst    bool   `json:"tls_first"`
	InboxPrefix string `json:"inbox_prefix"`
	APIPrefix   string `json:"jetstream_api_prefix"`
}

// writeContexts writes contexts for who may look, below the site's own folder:
// XDG_CONFIG_HOME=DIR/nats nats --context reader.
func (p *Plan) writeContexts(draft, final Layout, url string) error {
	for actor, what := range map[string]string{"reader": "reads everything, writes nothing", p.Person: strings.TrimSpace(p.Name) + ", a person of this site"} {
		text, err := json.Marshal(natsContext{
			Description: "banksman " + p.Origin + ": " + what, URL: url, NKey: final.LoginKey(actor), CA: final.CA(), TLSFirst: true,
			InboxPrefix: grants.InboxPrefix + "." + actor, APIPrefix: grants.APIPrefix,
		}, jsontext.WithIndent("  "))
		if err != nil {
			return err
		}
		if err := keys.WriteSecret(filepath.Join(draft.NATS(), "nats", "context", actor+".json"), text); err != nil {
			return err
		}
	}
	return nil
}
