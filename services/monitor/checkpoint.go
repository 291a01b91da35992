package monitor

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/banksman/banksman/events"
)

// checkpointVersion changes whenever an older file would be misread.
const checkpointVersion = 1

// checkpoint is the monitor's memory in a file, below a line that holds the
// digest of what follows, so that nothing is taken up that a fault of the disk
// or a hand has changed. It is a shortcut only.
type checkpoint struct {
	Version   int                       `json:"version"`
	Origin    string                    `json:"origin"`
	Config    Config                    `json:"config"` // what the detectors count depends on it
	Memory    *memory                   `json:"memory"`
	Detectors map[string]jsontext.Value `json:"detectors"`
}

// save writes the memory.
func save(path, origin string, cfg Config, m *memory, list []Detector) error {
	c := checkpoint{Version: checkpointVersion, Origin: origin, Config: cfg, Memory: m, Detectors: map[string]jsontext.Value{}}
	for _, d := range list {
		text, err := json.Marshal(d, json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("put away detector %s: %w", d.Name(), err)
		}
		c.Detectors[d.Name()] = text
	}
	text, err := json.Marshal(c, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("put away what the monitor remembers: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("put away what the monitor remembers: %w", err)
	}
	text = append([]byte(events.Digest(text)+"\n"), text...)
	if err := renameio.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("put away what the monitor remembers: %w", err)
	}
	return nil
}

// errDamaged is a checkpoint that save has not written.
var errDamaged = errors.New("its digest is not that of its content")

// errStale is a checkpoint that is of no use.
var errStale = errors.New("it was written by another version, for another site, or with another configuration")

// load reads the memory, and fills the detectors. Without a file it returns
// fs.ErrNotExist. After an error the detectors have to be made anew.
func load(path, origin string, cfg Config, list []Detector) (*memory, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum, text, _ := bytes.Cut(text, []byte("\n"))
	if string(sum) != events.Digest(text) {
		return nil, fmt.Errorf("read %s: %w", path, errDamaged)
	}
	c := checkpoint{Memory: newMemory()}
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if c.Version != checkpointVersion || c.Origin != origin || c.Config != cfg || c.Memory == nil || len(c.Detectors) != len(list) {
		return nil, fmt.Errorf("read %s: %w", path, errStale)
	}
	for _, d := range list {
		state, ok := c.Detectors[d.Name()]
		if !ok {
			return nil, fmt.Errorf("read %s: %w", path, errStale)
		}
		if err := json.Unmarshal(state, d); err != nil {
			return nil, fmt.Errorf("read %s: detector %s: %w", path, d.Name(), err)
		}
	}
	return c.Memory, nil
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
