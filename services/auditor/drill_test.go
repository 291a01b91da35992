package auditor

import "testing"

// TestDrill is the attack matrix: what each layer finds, with all before it.
func TestDrill(t *testing.T) {
	r, err := Drill(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{ // one letter a layer: chain, head, lock, witness, signatures, counters
		"DDDDDD", "-DDDDD", "-DDDDD", "-DDDDD", "-DDDDD", "-DDDDD", "--DDDD", "--DDDD", "---DDD", "-DDDDD",
		"---DDD", "---DDD", "-----D", "----DD", "----DD", "----DD", "-----D", "------",
	}
	var totals [6]int
	for i, row := range r.Attacks {
		got := ""
		for layer, found := range row.Found {
			if found {
				got += "D"
				totals[layer]++
			} else {
				got += "-"
			}
		}
		if i >= len(want) || got != want[i] {
			t.Errorf("%d %q: %s", i+1, row.Attack, got)
		}
	}
	if totals != [6]int{1, 7, 9, 12, 15, 17} || !r.OK || r.Detected != 17 || len(r.Attacks) != 18 {
		t.Errorf("totals %v, report %+v", totals, r)
	}
}
