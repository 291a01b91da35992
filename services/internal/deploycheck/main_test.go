package deploycheck

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// programs is the folder with every built program.
var programs string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "banksman-deploy-")
	if err == nil {
		programs = dir
		cmd := exec.Command("go", "build", "-o", dir+"/", "./cmd/...")
		cmd.Dir = project
		var text []byte
		if text, err = cmd.CombinedOutput(); err != nil {
			err = fmt.Errorf("build the programs: %w\n%s", err, text)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// project is the repository, seen from here.
const project = "../../.."

// prefix begins the name of each role's own program.
const prefix = "banksman-"

// roles are the roles that have a program of their own.
func roles(t *testing.T) []string {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(project, "cmd"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range list {
		if name, ok := strings.CutPrefix(entry.Name(), prefix); ok {
			names = append(names, name)
		}
	}
	if len(names) < 5 {
		t.Fatalf("cmd holds the roles %v only", names)
	}
	return names
}

// actorOf is the actor that a role of a new site signs as.
func actorOf(role string) string {
	if role == "approver" {
		return "gate"
	}
	return role
}

// needs are the files of a site that a role may see, by the name that it sees
// them under.
func needs(role string) []string {
	list := []string{"banksman.toml"}
	if role == "bus" {
		list = append(list, "genesis.json", "bus.pem", "bus.tls.key")
	} else {
		actor := actorOf(role)
		list = append(list, "ca.pem", actor+".login", actor+".sign")
	}
	switch role {
	case "proposer":
		list = append(list, "agent.local")
	case "auditor":
		list = append(list, "checkpoint.key")
	}
	slices.Sort(list)
	return list
}
