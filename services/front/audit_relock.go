package front

import (
	"encoding/base64"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/auditor"
	"github.com/banksman/banksman/services/internal/tlog"
)

// relocked is what audit relock says.
type relocked struct {
	Origin string `json:"origin"`
	Size   int64  `json:"size"`
	Root   string `json:"root"`
}

func (a *app) auditRelockCommand() *cobra.Command {
	return &cobra.Command{
		Use: "relock", Short: "Let the auditor put the head of the log into a bucket of the bus that holds none", Args: cobra.NoArgs,
		Long: "Order that the next start of the auditor puts the head that is kept in a file into the bucket\nof heads on the bus. It is for a bus that was made anew on purpose, and for a site that kept\nheads in a file alone. A bucket that holds a head of the log is never overwritten. First find\nout why it holds none: 'banksman audit verify' compares the log with the heads that you know.",
		RunE: func(*cobra.Command, []string) error {
			l, _, err := a.site()
			if err != nil {
				return err
			}
			head, err := auditor.Relock(l)
			if err != nil {
				return err
			}
			origin, size, root, err := tlog.ParseHead(head)
			if err != nil {
				return err
			}
			told := relocked{Origin: origin, Size: size, Root: base64.StdEncoding.EncodeToString(root[:])}
			return a.print(told, func(w io.Writer) {
				fmt.Fprintf(w, "the next start of the auditor puts the head of %s with %d entries, root %s, into the bucket, if that holds none\n", told.Origin, told.Size, told.Root)
			})
		},
	}
}
