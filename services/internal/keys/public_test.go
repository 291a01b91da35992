package keys

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// curve computes on edwards25519 (RFC 8032 section 5.1) the slow way, from its
// equation, so that the list of refused keys is derived and not believed.
type curve struct{ p, d *big.Int }

type point struct{ x, y *big.Int }

func newCurve() curve {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	d := new(big.Int).ModInverse(big.NewInt(121666), p)
	d.Mul(d, big.NewInt(-121665)).Mod(d, p)
	return curve{p, d}
}

func (c curve) mul(a, b *big.Int) *big.Int { r := new(big.Int).Mul(a, b); return r.Mod(r, c.p) }

func (c curve) div(a, b *big.Int) *big.Int { return c.mul(a, new(big.Int).ModInverse(b, c.p)) }

func (c curve) add(a, b point) point {
	xx, yy := c.mul(a.x, b.x), c.mul(a.y, b.y)
	k := c.mul(c.d, c.mul(xx, yy))
	one := big.NewInt(1)
	cross := new(big.Int).Add(c.mul(a.x, b.y), c.mul(a.y, b.x))
	return point{
		c.div(cross, new(big.Int).Mod(new(big.Int).Add(one, k), c.p)),
		c.div(new(big.Int).Add(yy, xx), new(big.Int).Mod(new(big.Int).Sub(one, k), c.p)),
	}
}

func (c curve) times(n *big.Int, a point) point {
	sum := point{big.NewInt(0), big.NewInt(1)}
	for i := n.BitLen() - 1; i >= 0; i-- {
		sum = c.add(sum, sum)
		if n.Bit(i) == 1 {
			sum = c.add(sum, a)
		}
	}
	return sum
}

// at returns a point with the given y, if there is one.
func (c curve) at(y *big.Int) (point, bool) {
	yy := c.mul(y, y)
	square := c.div(new(big.Int).Sub(yy, big.NewInt(1)), new(big.Int).Add(c.mul(c.d, yy), big.NewInt(1)))
	x := new(big.Int).ModSqrt(square, c.p)
	return point{x, y}, x != nil
}

func encode(y *big.Int, sign uint) [32]byte {
	raw := y.FillBytes(make([]byte, 32))
	slices.Reverse(raw)
	raw[31] |= byte(sign << 7)
	return [32]byte(raw)
}

// torsionEncodings returns all 32-byte texts that decode to a point of small
// order: the canonical ones, those with y not reduced, and those with a sign for
// x = 0.
func torsionEncodings(t *testing.T) [][32]byte {
	c := newCurve()
	order, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	order.Add(order, new(big.Int).Lsh(big.NewInt(1), 252))
	found := map[[32]byte]bool{}
	points := map[string]bool{}
	for y := int64(2); len(points) < 8 && y < 100; y++ {
		start, ok := c.at(big.NewInt(y))
		if !ok {
			continue
		}
		for n := range int64(8) {
			q := c.times(big.NewInt(n), c.times(order, start))
			points[q.x.String()+" "+q.y.String()] = true
			for _, y := range []*big.Int{q.y, new(big.Int).Add(q.y, c.p)} {
				if y.BitLen() > 255 {
					continue
				}
				found[encode(y, q.x.Bit(0))] = true
				if q.x.Sign() == 0 {
					found[encode(y, 1)] = true
				}
			}
		}
	}
	if len(points) != 8 || len(found) != 14 {
		t.Fatalf("derived %d points with %d encodings, want 8 with 14", len(points), len(found))
	}
	var all [][32]byte
	for raw := range found {
		all = append(all, raw)
	}
	return all
}

func TestKeysOfSmallOrderAreRefused(t *testing.T) {
	forged := make([]byte, 64) // R is the neutral element, S is 0: made without any key
	forged[0] = 1
	for _, raw := range torsionEncodings(t) {
		if !smallOrder(raw[:]) {
			t.Errorf("%x is not listed", raw)
		}
		p := NewPublicKey(raw[:])
		_, err := p.Bytes()
		wantErr(t, err, ErrBadPublicKey)
		forgeable := false
		for n := range 500 {
			msg := fmt.Appendf(nil, "order %d", n)
			forgeable = forgeable || ed25519.Verify(raw[:], msg, forged)
			if p.Verify(msg, forged) {
				t.Fatalf("%x accepts a signature that nobody made", raw)
			}
		}
		if !forgeable {
			t.Errorf("%x: the attack does not work even without the check, so this test shows nothing", raw)
		}
	}
}

func TestKeysNotReducedAreRefused(t *testing.T) {
	p := newCurve().p
	for n := range int64(19) {
		y := new(big.Int).Add(p, big.NewInt(n))
		for _, sign := range []uint{0, 1} {
			raw := encode(y, sign)
			_, err := NewPublicKey(raw[:]).Bytes()
			wantErr(t, err, ErrBadPublicKey, "reduced")
		}
	}
	raw := encode(new(big.Int).Sub(p, big.NewInt(2)), 0)
	if _, err := NewPublicKey(raw[:]).Bytes(); err != nil {
		t.Errorf("p-2 is reduced: %v", err)
	}
}

func TestPublicKeyTextIsUnique(t *testing.T) {
	good := string(newTestSigner(t).Public())
	if len(good) != len(publicPrefix)+43 {
		t.Fatalf("%q has an odd length", good)
	}
	last := good[len(good)-1]
	for name, text := range map[string]string{
		"empty": "", "no prefix": good[len(publicPrefix):], "upper prefix": "ED" + good[2:], "padded": good + "=",
		"line end": good + "\n", "inner line end": good[:20] + "\n" + good[20:], "space": " " + good,
		"short": good[:len(good)-1], "long": good + "A", "standard alphabet": good[:len(good)-2] + "+" + string(last),
		"spare bits": good[:len(good)-1] + string(last+1), "huge": publicPrefix + strings.Repeat("A", 1<<20),
	} {
		_, err := PublicKey(text).Bytes()
		wantErr(t, err, ErrBadPublicKey)
		if len(err.Error()) > 300 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

func TestEveryGeneratedKeyVerifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "seed")
		msg := rapid.SliceOf(rapid.Byte()).Draw(t, "msg")
		s := newSigner(ed25519.NewKeyFromSeed(seed))
		sig := s.Sign(msg)
		if !s.Public().Verify(msg, sig) {
			t.Fatal("refused")
		}
		sig[rapid.IntRange(0, 63).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if s.Public().Verify(msg, sig) {
			t.Fatal("a changed signature is accepted")
		}
	})
}

func FuzzPublicKey(f *testing.F) {
	f.Add(string(newTestSigner(f).Public()))
	f.Add("ed25519:" + strings.Repeat("A", 43))
	f.Add("ed25519:")
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := PublicKey(text).Bytes()
		if err == nil && string(NewPublicKey(raw)) != text {
			t.Errorf("%q is a second text of %x", text, raw)
		}
		if err != nil && raw != nil {
			t.Error("bytes beside an error")
		}
		if PublicKey(text).Verify(nil, bytes.Repeat([]byte{1}, 64)) {
			t.Error("a constant is a signature")
		}
	})
}
