package worker

// ring keeps the last limit bytes of what was written, in blocks: it grows as
// needed, copies nothing while it grows, and reuses a block that was overtaken.
type ring struct {
	limit  int64
	blocks [][]byte // oldest first; all but the last are full
	start  int      // of the oldest byte, in the first block
	size   int64
	spare  []byte // the block that was overtaken last
}

const ringBlock = 64 << 10 // bytes

// write returns how many older bytes had to go.
func (r *ring) write(p []byte) (cut int64) {
	if over := int64(len(p)) - r.limit; over > 0 {
		cut, p = over, p[over:]
	}
	for len(p) > 0 {
		last := len(r.blocks) - 1
		if last < 0 || len(r.blocks[last]) == ringBlock {
			if r.spare == nil {
				r.spare = make([]byte, 0, ringBlock)
			}
			r.blocks, r.spare = append(r.blocks, r.spare), nil
			last++
		}
		n := min(len(p), ringBlock-len(r.blocks[last]))
		r.blocks[last] = append(r.blocks[last], p[:n]...)
		r.size += int64(n)
		p = p[n:]
		cut += r.trim()
	}
	return cut
}

// trim lets the oldest bytes go that are over the limit.
func (r *ring) trim() (cut int64) {
	for over := r.size - r.limit; over > 0; over = r.size - r.limit {
		first := r.blocks[0]
		n := min(over, int64(len(first)-r.start))
		r.start += int(n)
		r.size -= n
		cut += n
		if r.start == ringBlock {
			copy(r.blocks, r.blocks[1:])
			r.blocks = r.blocks[:len(r.blocks)-1]
			r.start, r.spare = 0, first[:0]
		}
	}
	return cut
}

// parts returns the bytes, oldest first, in pieces.
func (r *ring) parts() [][]byte {
	out := append([][]byte(nil), r.blocks...)
	if len(out) > 0 {
		out[0] = out[0][r.start:]
	}
	return out
}
