package console

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// tree is a program with two levels of commands.
func tree() *cobra.Command {
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

func TestUnknownCommandsAreErrors(t *testing.T) {
	missing := []Missing{{Name: "init", Instead: "Type this."}, {Name: "addons"}}
	tests := map[string]struct {
		args string
		want string // empty for no error
	}{
		"no command":                             {"", ""},
		"only flags":                             {"--kubeconfig k --help", ""},
		"a command":                              {"get pods -n shop", ""},
		"a command with arguments of its own":    {"join frob --help", ""},
		"a command of a command":                 {"token create frob", ""},
		"a group alone":                          {"token", ""},
		"help of a command":                      {"help token create", ""},
		"completion, whatever follows":           {"__complete frob x", ""},
		"a word that means nothing":              {"frob", "unknown command \"frob\" for \"program\"\nSee 'program --help' for the commands that there are."},
		"asking for its help":                    {"frob --help", "unknown command \"frob\" for \"program\"\nSee"},
		"asking before":                          {"--help frob", "unknown command \"frob\" for \"program\"\nSee"},
		"asking with a word":                     {"help frob", "unknown command \"frob\" for \"program\"\nSee"},
		"after flags with values":                {"--kubeconfig get -n join --alsologtostderr frob", `unknown command "frob" for "program"`},
		"after values that are joined":           {"--kubeconfig=k -nshop frob", `unknown command "frob" for "program"`},
		"a near match":                           {"jion east", "unknown command \"jion\" for \"program\"; did you mean join?\nSee 'program --help'"},
		"what another program calls it":          {"list", `did you mean get?`},
		"below a group":                          {"token frob", "unknown command \"frob\" for \"program token\"\nSee 'program token --help'"},
		"below a group, near":                    {"token craete --help", `unknown command "craete" for "program token"; did you mean create?`},
		"below a group, after the word help":     {"help token frob", `unknown command "frob" for "program token"`},
		"a command that is not there yet":        {"init", "init is a command of Karmada that this version of program does not have yet\nType this."},
		"its help":                               {"init --help", "init is a command of Karmada that this version of program does not have yet"},
		"a group that is not there yet":          {"addons enable all", "addons is a command of Karmada that this version of program does not have yet"},
		"such a name below a group is only text": {"token init", `unknown command "init" for "program token"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := CheckCommand(tree(), strings.Fields(test.args), missing)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
