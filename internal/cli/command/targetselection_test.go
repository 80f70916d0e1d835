package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestSelection(t *testing.T) {
	either := func(s *Selection, cmd *cobra.Command) { s.AddScopeFlags(cmd) }
	member := func(s *Selection, cmd *cobra.Command) { s.AddMemberFlag(cmd) }
	karmada := func(*Selection, *cobra.Command) {}
	tests := map[string]struct {
		flags func(*Selection, *cobra.Command)
		args  []string
		want  string
		wrong string
	}{
		"the control plane by default":   {flags: either, want: KarmadaName},
		"the control plane by name":      {flags: either, args: []string{"-s", "karmada"}, want: KarmadaName},
		"a member":                       {flags: either, args: []string{"-s", "members", "--cluster", "east"}, want: "east"},
		"members without --cluster":      {flags: either, args: []string{"-s", "members"}, wrong: "a member cluster must be specified: --operation-scope members needs --cluster"},
		"a member without a scope":       {flags: either, args: []string{"--cluster", "east"}, want: "east"},
		"a member and the scope karmada": {flags: either, args: []string{"-C", "east", "-s", "karmada"}, wrong: "--cluster needs --operation-scope members"},
		"the scope all is not allowed":   {flags: either, args: []string{"-s", "all"}, wrong: `unsupported value "all" of --operation-scope: use karmada or members`},
		"several members":                {flags: either, args: []string{"-C", "east,west"}, wrong: "--cluster east,west: this command acts in one member only"},
		"a required member":              {flags: member, args: []string{"-C", "east"}, want: "east"},
		"a required member is missing":   {flags: member, wrong: "a cluster must be specified: set the member with --cluster"},
		"without flags":                  {flags: karmada, want: KarmadaName},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			streams, _, _, _ := genericiooptions.NewTestIOStreams()
			selection := &Selection{ClientFlags: ClientFlags{Program: &Program{IOStreams: streams}}}
			cmd := &cobra.Command{}
			test.flags(selection, cmd)
			err := cmd.ParseFlags(test.args)
			if err == nil {
				err = selection.ValidateFlags()
			}
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("got %v, want %q", err, test.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			selection.SetFromFlags()
			if got := selection.Target.Name(); got != test.want {
				t.Errorf("acts in %s, want %s", got, test.want)
			}
		})
	}
}
