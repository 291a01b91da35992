package proc

import (
	"testing"
	"time"
)

// Hundreds of dead children whose parent never waits for them, and then as many
// whose parent is gone, neither hide the living nor are left to the machine.
func TestZombieStorm(t *testing.T) {
	for name, last := range map[string]string{
		"the parent sleeps":  `exec sleep 300`,
		"the parent is gone": `(trap '' TERM; : >$READY; exec sleep 300) & echo pid $!; ` + ready + `exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			out := newTap()
			spec := shell(t, `i=0; while [ $i -lt 400 ]; do (exit 0) & i=$((i+1)); done; echo stormed; `+last, out)
			spec.Env = append(spec.Env, "READY="+place(t)+"/ready")
			spec.Grace = 200 * time.Millisecond
			p := begun(t, spec)
			out.await(t, "stormed")
			if last[0] == 'e' {
				p.Cancel("enough")
			}
			o := ended(t, p)
			if len(o.Survivors) > 0 || o.Ended > 20*time.Second {
				t.Errorf("outcome is %+v", o)
			}
			mustBeGone(t, p.Marker(), out.String())
			if left := zombieChildren(); len(left) > 0 {
				t.Errorf("dead processes that nobody collected: %v", left)
			}
		})
	}
}
