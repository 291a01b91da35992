package worker

import "github.com/banksman/banksman/services/internal/proc"

// StartedAgain turns this process into the steward of a job's tree, when that
// is what it was started for.
func (r *Role) StartedAgain() { proc.StewardMain() }
