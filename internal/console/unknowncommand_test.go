package console

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// newCommandTree returns a program with two levels of commands.
func newCommandTree() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "program", Run: run}
	root.PersistentFlags().String("kubeconfig", "", "")
	root.PersistentFlags().Bool("alsologtostderr", false, "")
	root.PersistentFlags().StringP("namespace", "n", "", "")
	token := &cobra.Command{Use: "token", Run: run}
	token.AddCommand(&cobra.Command{Use: "create", Run: run}, &cobra.Command{Use: "delete", Run: run})
	root.AddCommand(token, &cobra.Command{Use: "join", Run: run}, &cobra.Command{Use: "get", Run: run, SuggestFor: []string{"list"}})
	return root
}

func TestValidateCommandRejectsUnknown(t *testing.T) {
	tests := map[string]struct {
		args string
		want string // empty for no error
	}{
		"no command":                            {"", ""},
		"only flags":                            {"--kubeconfig k --help", ""},
		"a command":                             {"get pods -n shop", ""},
		"a command with arguments":              {"join frob --help", ""},
		"a subcommand":                          {"token create frob", ""},
		"a group without a command":             {"token", ""},
		"help of a command":                     {"help token create", ""},
		"shell completion":                      {"__complete frob x", ""},
		"an unknown command":                    {"frob", "unknown command \"frob\" for \"program\"\nSee 'program --help' for the available commands."},
		"an unknown command with --help":        {"frob --help", "unknown command \"frob\" for \"program\"\nSee"},
		"an unknown command after --help":       {"--help frob", "unknown command \"frob\" for \"program\"\nSee"},
		"help of an unknown command":            {"help frob", "unknown command \"frob\" for \"program\"\nSee"},
		"after flags with values":               {"--kubeconfig get -n join --alsologtostderr frob", `unknown command "frob" for "program"`},
		"after flags with joined values":        {"--kubeconfig=k -nshop frob", `unknown command "frob" for "program"`},
		"a similar command":                     {"jion east", "unknown command \"jion\" for \"program\"; did you mean join?\nSee 'program --help'"},
		"the name in another program":           {"list", `did you mean get?`},
		"an unknown command of a group":         {"token frob", "unknown command \"frob\" for \"program token\"\nSee 'program token --help'"},
		"a similar command of a group":          {"token craete --help", `unknown command "craete" for "program token"; did you mean create?`},
		"help of an unknown command of a group": {"help token frob", `unknown command "frob" for "program token"`},
		"an unknown name in a group":            {"token init", `unknown command "init" for "program token"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := ValidateCommand(newCommandTree(), strings.Fields(test.args))
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestSimilarNames(t *testing.T) {
	names := []string{"annotate", "api-resources", "api-versions", "apply", "cordon", "describe", "edit", "exec", "explain", "get", "join", "label", "logs", "register", "taint", "token", "top", "uncordon", "unjoin", "unregister"}
	tests := map[string]struct {
		typed string
		want  []string
	}{
		"two swapped neighbors":                        {"jion", []string{"join"}},
		"one character too many":                       {"gett", []string{"get"}},
		"one character is missing":                     {"anotate", []string{"annotate"}},
		"two differences in a long word":               {"unregistar2", []string{"unregister"}},
		"upper case":                                   {"JOIN", []string{"join"}},
		"the prefix of one name":                       {"desc", []string{"describe"}},
		"the prefix of two names":                      {"api", []string{"api-resources", "api-versions"}},
		"half of a short word differs":                 {"init", nil},
		"two characters of another word":               {"up", nil},
		"a single character":                           {"a", nil},
		"an unrelated word":                            {"frobnicate", nil},
		"names are sorted by distance":                 {"unjon", []string{"unjoin"}},
		"names with equal distance are sorted by name": {"tox", []string{"top"}},
		"an empty word":                                {"", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := similarNames(test.typed, names)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("similar names (-want +got):\n%s", diff)
			}
		})
	}
}
