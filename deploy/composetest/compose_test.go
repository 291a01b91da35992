package composetest

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// load reads the project as the compose command does.
func load(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	file, err := filepath.Abs("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	o, err := cli.NewProjectOptions([]string{file}, cli.WithProfiles(profiles), cli.WithEnv([]string{"BANKSMAN_USER=1234:1234"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComposeFileKeepsToTheSpecification(t *testing.T) {
	p := load(t)
	for _, name := range []string{"bus", "proposer", "approver", "worker", "supervisor", "monitor", "auditor"} {
		s, err := p.GetService(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.User != "1234:1234" || !s.ReadOnly || s.HealthCheck == nil || s.HealthCheck.Disable || len(s.Secrets) == 0 {
			t.Errorf("%s: user %q, read-only %t, healthcheck %v, %d secrets", name, s.User, s.ReadOnly, s.HealthCheck, len(s.Secrets))
		}
	}
	for _, name := range []string{"init", "cli"} {
		if _, err := p.GetService(name); err == nil {
			t.Errorf("%s starts with the site; it belongs to a profile", name)
		}
	}
}

func TestProfilesHoldWhatIsRunByHand(t *testing.T) {
	p := load(t, "init", "cli")
	s, err := p.GetService("init")
	if err != nil {
		t.Fatal(err)
	}
	if s.NetworkMode != "none" || len(s.Networks) > 0 || len(s.Secrets) > 0 {
		t.Errorf("init: network_mode %q, networks %v, secrets %v", s.NetworkMode, s.Networks, s.Secrets)
	}
	if !slices.Equal(s.Entrypoint, []string{"banksman", "init", "--dir", "/here/site", "--listen", "0.0.0.0:4222", "--bus-host", "bus"}) {
		t.Errorf("init runs %q", s.Entrypoint)
	}
}

// Replicas of a service share its named volumes; one without a name is made for
// each of them.
func TestWorkersStateIsOneReplicasOwn(t *testing.T) {
	s, err := load(t).GetService("worker")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range s.Volumes {
		if v.Target == "/var/lib/banksman" && (v.Source != "" || v.Type != types.VolumeTypeVolume) {
			t.Errorf("the worker's state is the %s %q", v.Type, v.Source)
		}
	}
	if s.ContainerName != "" || len(s.Ports) > 0 {
		t.Errorf("container_name %q and ports %v forbid a second replica", s.ContainerName, s.Ports)
	}
}
