package deploycheck

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// compose is the part of the Compose Specification that the file uses. Unknown
// keys are refused; deploy/composetest reads the file with the specification's
// own reader.
type compose struct {
	Name     string                    `yaml:"name"`
	Services map[string]composeService `yaml:"services"`
	Volumes  map[string]struct{}       `yaml:"volumes"`
	Secrets  map[string]struct {
		File string `yaml:"file"`
	} `yaml:"secrets"`
	Rest map[string]yaml.Node `yaml:",inline"`
}

type composeService struct {
	Image       string            `yaml:"image"`
	Build       composeBuild      `yaml:"build"`
	Entrypoint  []string          `yaml:"entrypoint"`
	Environment map[string]string `yaml:"environment"`
	WorkingDir  string            `yaml:"working_dir"`
	Profiles    []string          `yaml:"profiles"`
	Restart     string            `yaml:"restart"`
	User        string            `yaml:"user"`
	ReadOnly    bool              `yaml:"read_only"`
	Init        bool              `yaml:"init"`
	CapDrop     []string          `yaml:"cap_drop"`
	SecurityOpt []string          `yaml:"security_opt"`
	NetworkMode string            `yaml:"network_mode"`
	PidsLimit   int               `yaml:"pids_limit"`
	MemLimit    string            `yaml:"mem_limit"`
	StopGrace   string            `yaml:"stop_grace_period"`
	Secrets     []string          `yaml:"secrets"`
	Volumes     []string          `yaml:"volumes"`
	Tmpfs       []string          `yaml:"tmpfs"`
	Logging     yaml.Node         `yaml:"logging"`
	Healthcheck struct {
		Test        []string `yaml:"test"`
		Disable     bool     `yaml:"disable"`
		Interval    string   `yaml:"interval"`
		Timeout     string   `yaml:"timeout"`
		StartPeriod string   `yaml:"start_period"`
		Retries     int      `yaml:"retries"`
	} `yaml:"healthcheck"`
	DependsOn map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
}

type composeBuild struct {
	Context    string `yaml:"context"`
	Dockerfile string `yaml:"dockerfile"`
	Target     string `yaml:"target"`
}

func readCompose(t *testing.T) *compose {
	t.Helper()
	file, err := os.Open(filepath.Join(project, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	d := yaml.NewDecoder(file)
	d.KnownFields(true)
	var c compose
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	for key := range c.Rest {
		if !strings.HasPrefix(key, "x-") {
			t.Errorf("the key %s is none of the specification's that the file uses", key)
		}
	}
	return &c
}

// once are services that end by themselves.
var once = []string{"init", "cli"}

// files maps what a service is given to where in a site it lies.
func (c *compose) files(t *testing.T, name string) map[string]string {
	t.Helper()
	from := map[string]string{}
	for _, secret := range c.Services[name].Secrets {
		below, ok := strings.CutPrefix(c.Secrets[secret].File, "./site/")
		if !ok {
			t.Fatalf("secret %s lies at %q, want ./site/FILE", secret, c.Secrets[secret].File)
		}
		from[secret] = below
	}
	return from
}

func TestEveryProgramHasAService(t *testing.T) {
	got := slices.Sorted(maps.Keys(readCompose(t).Services))
	want := append(roles(t), once...)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("services (-programs, init and cli, +services):\n%s", diff)
	}
}

func TestServicesGiveEachRoleItsOwnFiles(t *testing.T) {
	c := readCompose(t)
	for _, role := range roles(t) {
		t.Run(role, func(t *testing.T) {
			got := slices.Sorted(slices.Values(c.Services[role].Secrets))
			if diff := cmp.Diff(needs(role), got); diff != "" {
				t.Errorf("files (-needed +given):\n%s", diff)
			}
			for _, v := range c.Services[role].Volumes {
				if strings.HasPrefix(v, ".") || strings.HasPrefix(v, "/") && strings.Contains(v, ":") {
					t.Errorf("it sees %s of the machine", v)
				}
			}
		})
	}
	for name := range c.Secrets {
		if name == "root.sign" || strings.HasSuffix(name, "ca.key") {
			t.Errorf("%s is for no container", name)
		}
	}
}

func TestContainersAreConfined(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		t.Run(name, func(t *testing.T) {
			if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
				t.Errorf("read_only %t, cap_drop %v, security_opt %v", s.ReadOnly, s.CapDrop, s.SecurityOpt)
			}
			if s.User != "${BANKSMAN_USER:-1000:1000}" || s.PidsLimit == 0 || s.MemLimit == "" {
				t.Errorf("user %q, pids_limit %d, mem_limit %q", s.User, s.PidsLimit, s.MemLimit)
			}
			wider := slices.DeleteFunc(slices.Clone(s.SecurityOpt), func(o string) bool { return o == "no-new-privileges:true" })
			if runs := s.Build.Target == "runner"; runs != (len(wider) > 0) {
				t.Errorf("target %s has security_opt %v", s.Build.Target, wider)
			}
		})
	}
}

func TestRolesAreSupervised(t *testing.T) {
	c := readCompose(t)
	for _, role := range roles(t) {
		t.Run(role, func(t *testing.T) {
			s := c.Services[role]
			if !slices.Equal(s.Entrypoint, []string{prefix + role}) || len(s.Profiles) > 0 || s.Restart != "unless-stopped" {
				t.Errorf("entrypoint %v, profiles %v, restart %q", s.Entrypoint, s.Profiles, s.Restart)
			}
			if !slices.Equal(s.Healthcheck.Test, []string{"CMD", "banksman", "health"}) || s.Healthcheck.Disable {
				t.Errorf("healthcheck %v", s.Healthcheck.Test)
			}
			if role != "bus" && s.DependsOn["bus"].Condition != "service_healthy" {
				t.Errorf("it depends on %v, want a healthy bus", s.DependsOn)
			}
			if len(s.Environment) > 0 {
				t.Errorf("environment %v: a role's settings are in its configuration, its secrets in files", s.Environment)
			}
			covered := strings.Join(append(s.Tmpfs, s.Volumes...), " ")
			for _, folder := range []string{"/var/lib/banksman", "/run/banksman"} {
				if !strings.Contains(covered, folder) {
					t.Errorf("nothing writable is mounted on %s, but the root is read-only", folder)
				}
			}
		})
	}
}

// Whoever adds a replica gets one with a state of its own.
func TestWorkerScales(t *testing.T) {
	s := readCompose(t).Services["worker"]
	if !slices.Contains(s.Volumes, "/var/lib/banksman") {
		t.Errorf("volumes %v: replicas must not share a folder of attempts", s.Volumes)
	}
}

// The folders of the image, of the units' layout and of the compose file are the
// same, or a role would look elsewhere.
func TestImagesNameTheFolders(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(project, "deploy", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^FROM \S+ AS (\w+)$`).FindAllStringSubmatch(string(text), -1)
	parts := regexp.MustCompile(`(?m)^FROM \S+ AS \w+$`).Split(string(text), -1)
	if len(names) != 3 || len(parts) != 4 {
		t.Fatalf("the Dockerfile has the stages %v", names)
	}
	for i, name := range names {
		part := parts[i+1]
		if name[1] == "build" {
			continue
		}
		for _, want := range []string{
			"CREDENTIALS_DIRECTORY=/run/secrets", "STATE_DIRECTORY=/var/lib/banksman", "RUNTIME_DIRECTORY=/run/banksman",
			"USER 65532:65532", `CMD ["banksman", "health"]`,
		} {
			if !strings.Contains(part, want) {
				t.Errorf("stage %s does not say %s", name[1], want)
			}
		}
	}
	// What a volume covers has to be open to any user: copying a folder into an
	// image sets the mode of what lies in it, not its own.
	for stage, open := range map[int]string{1: "chmod 1777 /image/tmp /image/run/banksman /image/var/lib/banksman", 3: "install -d -m 1777 /run/banksman /var/lib/banksman /work"} {
		if !strings.Contains(parts[stage], open) {
			t.Errorf("stage %s does not say %s", names[stage-1][1], open)
		}
	}
	for _, s := range readCompose(t).Services {
		if !strings.Contains(string(text), " AS "+s.Build.Target+"\n") || s.Image != "banksman:"+s.Build.Target {
			t.Errorf("image %q is built from stage %q", s.Image, s.Build.Target)
		}
	}
	ignore, err := os.ReadFile(filepath.Join(project, "deploy", "Dockerfile.dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(string(text), -1) {
		for _, source := range strings.Fields(m[1]) {
			if !strings.Contains(string(ignore), "\n!"+source+"\n") {
				t.Errorf("the build copies %s, which its ignore file keeps out", source)
			}
		}
	}
	if !strings.Contains(string(ignore), "\n*\n") {
		t.Error("the ignore file does not keep out what it does not name")
	}
}
