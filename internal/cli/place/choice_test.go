package place

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"karmada.io/karmada/internal/cli/command"
)

func TestAPlaceIsChosenInOneWay(t *testing.T) {
	either := func(c *Choice, cmd *cobra.Command) { c.AddEither(cmd) }
	member := func(c *Choice, cmd *cobra.Command) { c.AddMember(cmd) }
	karmada := func(*Choice, *cobra.Command) {}
	tests := map[string]struct {
		flags func(*Choice, *cobra.Command)
		args  []string
		want  string
		wrong string
	}{
		"the control plane unless told otherwise":    {flags: either, want: KarmadaName},
		"the control plane by name":                  {flags: either, args: []string{"-s", "karmada"}, want: KarmadaName},
		"a member":                                   {flags: either, args: []string{"-s", "members", "--cluster", "east"}, want: "east"},
		"members without saying which":               {flags: either, args: []string{"-s", "members"}, wrong: "a member cluster must be specified: --operation-scope members needs --cluster"},
		"a member, which no scope excludes":          {flags: either, args: []string{"--cluster", "east"}, want: "east"},
		"a member, and the scope of the other side":  {flags: either, args: []string{"-C", "east", "-s", "karmada"}, wrong: "--cluster needs --operation-scope members"},
		"both sides, where only one can be acted on": {flags: either, args: []string{"-s", "all"}, wrong: `unsupported value "all" of --operation-scope: use karmada or members`},
		"several members, as other commands take":    {flags: either, args: []string{"-C", "east,west"}, wrong: "--cluster east,west: this command acts in one member; name one"},
		"always a member":                            {flags: member, args: []string{"-C", "east"}, want: "east"},
		"always a member, without saying which":      {flags: member, wrong: "a cluster must be specified: name the member with --cluster"},
		"always the control plane":                   {flags: karmada, want: KarmadaName},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			streams, _, _, _ := genericiooptions.NewTestIOStreams()
			choice := &Choice{Access: Access{Program: &command.Program{IOStreams: streams}}}
			cmd := &cobra.Command{}
			test.flags(choice, cmd)
			err := cmd.ParseFlags(test.args)
			if err == nil {
				err = choice.CheckFlags()
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
			choice.Guess()
			if got := choice.Place.Name(); got != test.want {
				t.Errorf("acts in %s, want %s", got, test.want)
			}
		})
	}
}
