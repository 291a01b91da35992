package host

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/site"
)

// Exit codes of a role's own binary.
const (
	exitFailed = 1
	exitUsage  = 2
	exitConfig = 78
)

// Main runs one role's binary: it reads --dir, --instance and --log-level, runs
// until a signal drains it, and returns the exit code. A nil start joins the
// site's bus.
func Main(name string, start StartBus, roles ...Role) int {
	for _, r := range roles {
		if again, ok := r.(StartsItselfAgain); ok {
			again.StartedAgain()
		}
	}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	dir := flags.String("dir", os.Getenv(site.EnvDir), "the site's folder (default $BANKSMAN_DIR, else banksman in the XDG data home)")
	instance := flags.String("instance", "", "tells replicas from one folder apart, such as 2")
	level := flags.String("log-level", "info", "least level of log lines: debug, info, warn or error")
	if err := flags.Parse(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return exitUsage
	}
	var least slog.Level
	if err := least.UnmarshalText([]byte(*level)); err != nil {
		fmt.Fprintf(os.Stderr, "banksman-%s: --log-level %q: want debug, info, warn or error\n", name, *level)
		return exitUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "banksman-%s: %q is no flag; the role takes flags only, see --help\n", name, flags.Arg(0))
		return exitUsage
	}
	ctx, hurry, stop := Signals(context.Background())
	defer stop()
	err := runMain(ctx, *dir, least, Options{Command: name, Instance: *instance, Roles: roles, Embed: start, Hurry: hurry})
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "banksman-%s: %v\n", name, err)
	var bad *config.Error
	if errors.As(err, &bad) || errors.Is(err, ErrNoSite) {
		return exitConfig
	}
	return exitFailed
}

func runMain(ctx context.Context, dir string, least slog.Level, o Options) error {
	l, err := site.At(dir, os.Getenv)
	if err != nil {
		return err
	}
	if _, err := LoadSite(l); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: least}))
	o.Layout, o.Version, o.Log, o.Ready = l, Version(), log, func() { log.Info("ready") }
	return Run(ctx, o)
}
