package proc

import "testing"

// BenchmarkRun measures a whole run of a program that does nothing.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		name string
		hide bool
		crew *Crew
	}{{"own steward", false, nil}, {"crew", false, &Crew{}}, {"crew, hidden folder", true, &Crew{}}} {
		b.Run(c.name, func(b *testing.B) {
			path, err := Resolve("true", "/", "/usr/bin:/bin")
			if err != nil {
				b.Fatal(err)
			}
			spec := Spec{Argv: []string{"true"}, Path: path, Dir: "/", ExpectSHA256: digestOf(b, path)}
			if c.hide {
				spec.Hide = []string{place(b)}
			}
			start := Start
			if c.crew != nil {
				start = c.crew.Start
				defer c.crew.Close()
			}
			for b.Loop() {
				p, err := start(b.Context(), spec)
				if err != nil {
					b.Fatal(err)
				}
				if outcome, err := p.Wait(); err != nil || outcome.ExitCode != 0 {
					b.Fatal(outcome, err)
				}
			}
		})
	}
}
