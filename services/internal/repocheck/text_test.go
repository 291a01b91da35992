package repocheck

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// The patterns are put together from pieces, so that this file does not break
// its own rules.
var (
	// machine are paths that only the machine has on which the project began.
	machine = regexp.MustCompile(`(^|[^\w./-])(/wo` + `rk/|/tmp/pl` + `an)|\.\./sha` + `red\b`)
	// hosts are where packages come from; which one is each machine's business.
	hosts = regexp.MustCompile(`https?://(pro` + `xy|regi` + `stry|d` + `eb)\.|\b(pro` + `xy\.golang|s` + `um\.golang|regi` + `stry\.npmjs|py` + `pi|pythonhos` + `ted|d` + `eb\.debian)\.org\b`)
	// unfinished are words of work that somebody meant to come back to.
	unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)
	// reference is the target of a Markdown link.
	reference = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// heading is a Markdown heading.
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	// unsluggish is what a heading loses on its way to an anchor.
	unsluggish = regexp.MustCompile(`[^\w\- ]`)
)

func textRules() []rule {
	return []rule{
		{
			name:    "no paths of one machine",
			why:     "whoever clones the project has none of its first author's folders",
			find:    matches(machine),
			planted: map[string]string{"a.md": "see /wo" + "rk/main\n", "b.go": "package b // ../sha" + "red\n"},
		},
		{
			name:    "no package hosts",
			why:     "where packages come from is the setting of each machine, not of the project",
			find:    matches(hosts),
			planted: map[string]string{"a.sh": "curl https://regi" + "stry.example/x\n", "b.txt": "GOPROXY=pro" + "xy.golang.org\n"},
		},
		{
			name:    "nothing is left to be done in comments",
			why:     "a note to oneself in the source is read by nobody who could act on it",
			find:    matches(unfinished),
			planted: map[string]string{"a.go": "package a // TO" + "DO: all\n"},
		},
		{
			name: "links lead somewhere",
			why:  "a document that points at nothing is worse than one that points nowhere",
			find: documentLinks,
			planted: map[string]string{
				"a.md":     "[gone](gone.md)\n",
				"dir/b.md": "# Here\n[there](#there)\n",
				"c.md":     "[far](https://example.org/x) [up](../out.md)\n",
			},
		},
	}
}

func matches(pattern *regexp.Regexp) func(*tree) []fault {
	return func(r *tree) (faults []fault) {
		for _, t := range r.texts {
			for i, line := range strings.Split(t.content, "\n") {
				if m := pattern.FindString(line); m != "" {
					faults = append(faults, fault{t.path, fmt.Sprintf("line %d says %q", i+1, strings.TrimSpace(m))})
				}
			}
		}
		return faults
	}
}

func documentLinks(r *tree) (faults []fault) {
	exists := map[string]bool{".": true}
	content := map[string]string{}
	for _, t := range r.texts {
		content[t.path] = t.content
		for p := t.path; p != "."; p = path.Dir(p) {
			exists[p] = true
		}
	}
	for _, t := range r.texts {
		if path.Ext(t.path) != ".md" {
			continue
		}
		for _, m := range reference.FindAllStringSubmatch(t.content, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := t.path
			if file != "" {
				target = path.Join(path.Dir(t.path), file)
			}
			switch {
			case !exists[target]:
				faults = append(faults, fault{t.path, "links to " + m[1] + ", which does not exist"})
			case anchor != "" && !hasAnchor(content[target], anchor):
				faults = append(faults, fault{t.path, "links to " + m[1] + ", which has no such heading"})
			}
		}
	}
	return faults
}

// hasAnchor says whether a document has a heading with the anchor that forges
// make of it.
func hasAnchor(document, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(document, -1) {
		slug := strings.ReplaceAll(unsluggish.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		if slug == anchor {
			return true
		}
	}
	return false
}
