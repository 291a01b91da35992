package redact

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"
)

// texts are 1 MiB each.
func texts() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	raw := make([]byte, 1<<20*3/4)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	fill := func(line string) []byte { return []byte(strings.Repeat(line, 1<<20/len(line)+1)[:1<<20]) }
	return map[string][]byte{
		"base64":         []byte(base64.StdEncoding.EncodeToString(raw)),
		"log":            fill("2026-11-29T20:11:44Z INFO request handled method=GET path=/v1/things/42 status=200 duration_ms=12 remote=10.0.0.1\n"),
		"keywords":       fill("password secret token api_key authorization bearer credential passwd "),
		"keyword fields": fill("password: wordsonly token=plainwords secret: other https://host.invalid/x "),
		"long failures":  fill("password:" + strings.Repeat("a", 1000) + " "),
		"urls":           fill("://" + strings.Repeat("a:", 300)),
		"begins":         fill("-----BEGIN " + "PRIVATE KEY----- "),
		"newlines":       fill("\n"),
		"sk":             fill("sk-"),
	}
}

func BenchmarkStream(b *testing.B) {
	rules := New(Value{"A", fake("x", 40)}, Value{"B", fake("y", 400)}, Value{"C", strings.Repeat("abcdefg\n", 8)})
	for name, text := range texts() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s := rules.Stream(func([]byte) {})
				for i := 0; i < len(text); i += 32 << 10 {
					s.Write(text[i : i+32<<10])
				}
				s.Close()
				b.ReportMetric(float64(s.Withheld()), "withheld")
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(Value{"A", fake("x", 40)})
	}
}
