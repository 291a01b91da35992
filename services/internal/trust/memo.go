package trust

import (
	"crypto/sha256"
	"sync"
)

// generation is how many signatures a memo keeps for certain; it may keep twice
// as many.
const generation = 2048

// memo remembers signatures that verified. Roles read a job anew at each of its
// events, and checking a signature costs more than everything else that reading
// does. A signature counts for exactly the key and the text that it was checked
// with. The zero value is empty.
type memo struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]struct{} // a full young becomes the old, and the old is forgotten
}

// verified checks a signature, or remembers that it has.
func (m *memo) verified(key string, text, sig []byte, check func() bool) bool {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(key), text, sig} {
		sum := sha256.Sum256(part) // so that no part can run into the next
		h.Write(sum[:])
	}
	id := [sha256.Size]byte(h.Sum(nil))
	if m.holds(id) {
		return true
	}
	if !check() {
		return false
	}
	m.keep(id)
	return true
}

func (m *memo) holds(id [sha256.Size]byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, young := m.young[id]
	_, old := m.old[id]
	return young || old
}

func (m *memo) keep(id [sha256.Size]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.young == nil || len(m.young) >= generation {
		m.old, m.young = m.young, make(map[[sha256.Size]byte]struct{})
	}
	m.young[id] = struct{}{}
}
