package combinedversion_test

import (
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/domain/combinedversion"
)

func TestVersion(t *testing.T) {
	tests := map[string]struct {
		text     string
		combined bool
		encoded  string
		m1       string
	}{
		"two clusters":        {text: "eyJtMSI6IjEwIiwibTIiOiIyMCJ9", combined: true, encoded: "eyJtMSI6IjEwIiwibTIiOiIyMCJ9", m1: "10"},
		"padding is accepted": {text: "eyJtMSI6IjEwIn0=", combined: true, encoded: "eyJtMSI6IjEwIn0", m1: "10"},
		"no cluster":          {text: "e30", combined: true, encoded: "e30"},
		"the empty version applies to every cluster":     {text: ""},
		"the version 0 applies to every cluster":         {text: "0", encoded: "0", m1: "0"},
		"a version of another server counts as empty":    {text: "12345"},
		"JSON null counts as empty":                      {text: base64.RawURLEncoding.EncodeToString([]byte("null"))},
		"JSON with other values counts as empty":         {text: base64.RawURLEncoding.EncodeToString([]byte(`{"m1":10}`))},
		"text that is no base64 counts as empty":         {text: "not base64!"},
		"an entry of another cluster is not that of m1":  {text: "eyJtMiI6IjIwIn0", combined: true, encoded: "eyJtMiI6IjIwIn0"},
		"a binary text is no version and does not panic": {text: "\xff\xfe"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			version := combinedversion.Parse(test.text)
			if got := version.String(); got != test.encoded {
				t.Errorf("encoded %q, want %q", got, test.encoded)
			}
			if got := version.For("m1"); got != test.m1 {
				t.Errorf("m1 has %q, want %q", got, test.m1)
			}
			if got := combinedversion.IsCombined(test.text); got != test.combined {
				t.Errorf("IsCombined is %v", got)
			}
		})
	}
}

func TestVersionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clusters := rapid.MapOf(rapid.String(), rapid.StringMatching(`[0-9]{1,19}`)).Draw(t, "clusters")
		parsed := combinedversion.Parse(combinedversion.New(clusters).String())
		// Invalid UTF-8 does not survive JSON, and cluster names are DNS labels.
		for cluster, version := range clusters {
			if cluster == string([]rune(cluster)) && parsed.For(cluster) != version {
				t.Fatalf("%q has %q, want %q", cluster, parsed.For(cluster), version)
			}
		}
	})
}

func TestContinue(t *testing.T) {
	for name, position := range map[string]combinedversion.Continue{
		"within a cluster":    {Version: "eyJtMSI6IjEwIn0", Cluster: "m1", Token: "abc"},
		"at the next cluster": {Version: "eyJtMSI6IjEwIn0", Cluster: "m2"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := combinedversion.ParseContinue(position.String())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(position, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	want := base64.RawURLEncoding.EncodeToString([]byte(`{"rv":"v","cluster":"m1","continue":"t"}`))
	if got := (combinedversion.Continue{Version: "v", Cluster: "m1", Token: "t"}).String(); got != want {
		t.Errorf("encoded %s, want %s", got, want)
	}
}

func TestInvalidContinue(t *testing.T) {
	for name, token := range map[string]string{
		"of a member":             "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAsInN0YXJ0IjoiYSJ9",
		"no base64":               "!",
		"no JSON":                 "abc",
		"very long and not UTF-8": string(make([]byte, 300)) + "\xff",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := combinedversion.ParseContinue(token); err == nil {
				t.Error("no error")
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("eyJtMSI6IjEwIn0")
	f.Fuzz(func(t *testing.T, text string) {
		version := combinedversion.Parse(text)
		if again := combinedversion.Parse(version.String()); again.String() != version.String() {
			t.Errorf("%q becomes %q, then %q", text, version, again)
		}
		if position, err := combinedversion.ParseContinue(text); err == nil && position.Cluster == "" {
			t.Error("a token without a cluster is accepted")
		}
	})
}
