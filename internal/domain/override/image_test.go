package override

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

const sha256Digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParseImage(t *testing.T) {
	tests := map[string]struct {
		in   string
		want image
	}{
		"only a name":                    {"nginx", image{repository: "nginx"}},
		"a path without a host":          {"library/nginx", image{repository: "library/nginx"}},
		"a host with a dot":              {"docker.io/nginx", image{registry: "docker.io", repository: "nginx"}},
		"a host with a port":             {"reg:5000/a/b:1", image{registry: "reg:5000", repository: "a/b", tag: "1"}},
		"localhost is a host":            {"localhost/nginx", image{registry: "localhost", repository: "nginx"}},
		"an IPv6 address is a host":      {"[fe80::1]:5000/nginx:1", image{registry: "[fe80::1]:5000", repository: "nginx", tag: "1"}},
		"a tag":                          {"nginx:1.27", image{repository: "nginx", tag: "1.27"}},
		"a digest":                       {"nginx@" + sha256Digest, image{repository: "nginx", digest: sha256Digest}},
		"tag and digest":                 {"nginx:1@" + sha256Digest, image{repository: "nginx", tag: "1", digest: sha256Digest}},
		"a name with a dot and no slash": {"nginx.d:1", image{repository: "nginx.d", tag: "1"}},
		"a double underscore in a name":  {"a__b/c-d.e", image{repository: "a__b/c-d.e"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseImage(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(image{})); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			if got.String() != tc.in {
				t.Errorf("String() = %q, want %q", got, tc.in)
			}
		})
	}
}

func TestParseImageRejectsInvalid(t *testing.T) {
	for name, in := range map[string]string{
		"an empty text": "", "a space": "ng inx", "an upper case repository": "Nginx", "an empty tag": "nginx:",
		"a short digest": "nginx@sha256:abc", "an empty path element": "a//b", "a bad tag": "nginx:-x", "a bare host": "docker.io/",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseImage(in); err == nil {
				t.Errorf("parsed %q as %+v", in, got)
			}
		})
	}
}

func TestImageComponents(t *testing.T) {
	tests := map[string]struct {
		in, component, operator, value, want string
	}{
		"registry add appends":                         {"reg.io/a:1", "Registry", "add", ":5000", "reg.io:5000/a:1"},
		"registry add sets a missing registry":         {"a:1", "Registry", "add", "reg.io", "reg.io/a:1"},
		"registry replace":                             {"reg.io/a:1", "Registry", "replace", "x.y", "x.y/a:1"},
		"registry replace sets a missing registry":     {"a:1", "Registry", "replace", "x.y", "x.y/a:1"},
		"registry remove":                              {"reg.io/a:1", "Registry", "remove", "", "a:1"},
		"repository add appends":                       {"reg.io/a:1", "Repository", "add", "/b", "reg.io/a/b:1"},
		"repository replace":                           {"reg.io/a:1", "Repository", "replace", "b", "reg.io/b:1"},
		"repository remove":                            {"reg.io/a:1", "Repository", "remove", "", "reg.io:1"},
		"tag add appends":                              {"a:1", "Tag", "add", "-alpine", "a:1-alpine"},
		"tag add sets a missing tag":                   {"a", "Tag", "add", "1", "a:1"},
		"tag replace":                                  {"a:1", "Tag", "replace", "2", "a:2"},
		"tag replaced by a digest":                     {"a:1", "Tag", "replace", sha256Digest, "a@" + sha256Digest},
		"digest replaced by a tag":                     {"a@" + sha256Digest, "Tag", "replace", "2", "a:2"},
		"digest extended":                              {"a@" + sha256Digest, "Tag", "add", "ab", "a@" + sha256Digest + "ab"},
		"tag remove":                                   {"a:1", "Tag", "remove", "", "a"},
		"digest remove":                                {"a@" + sha256Digest, "Tag", "remove", "", "a"},
		"tag replaced by a tag with a digest":          {"a:1", "Tag", "replace", "v2@" + sha256Digest, "a:v2@" + sha256Digest},
		"a registry with a path":                       {"a:1", "Registry", "replace", "mirror.example/team", "mirror.example/team/a:1"},
		"the registry of an image with tag and digest": {"a:1@" + sha256Digest, "Registry", "replace", "x.y", "x.y/a:1@" + sha256Digest},
		"the tag of an image with tag and digest":      {"a:1@" + sha256Digest, "Tag", "replace", "2", "a:2"},
		"removing the tag removes the digest too":      {"a:1@" + sha256Digest, "Tag", "remove", "", "a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, why, err := changeImage(nil, tc.in, policyv1alpha1.ImageOverrider{
				Component: policyv1alpha1.ImageComponent(tc.component),
				Operator:  policyv1alpha1.OverriderOperator(tc.operator), Value: tc.value,
			})
			if err != nil || why != "" || got != tc.want {
				t.Errorf("got %q (%s, %v), want %q", got, why, err, tc.want)
			}
		})
	}
}

// An overrider whose result is not a valid image reference has no effect. If no image can give a
// valid reference, admission rejects the overrider.
func TestImageOverriderWithInvalidResult(t *testing.T) {
	tests := map[string]struct {
		image, component, operator, value string
		isRejected                        bool
	}{
		"a tag with a space":                 {"a:1", "Tag", "replace", "no tag", true},
		"a tag with a colon":                 {"a:1", "Tag", "replace", ":v2", true},
		"a digest with @":                    {"a:1", "Tag", "replace", "@" + sha256Digest, true},
		"a short digest":                     {"a:1", "Tag", "replace", "v2@sha256:12", true},
		"a tag that becomes too long":        {"a:1", "Tag", "add", strings.Repeat("x", 128), false},
		"a registry with an empty element":   {"a:1", "Registry", "replace", "mirror.example//team", true},
		"a registry that begins with a dot":  {"a:1", "Registry", "replace", ".x/team", true},
		"a registry with a scheme":           {"a:1", "Registry", "replace", "https://mirror.example", true},
		"a repository with a tag":            {"app:v1@" + sha256Digest, "Repository", "replace", "app:v9", true},
		"a repository with capital letters":  {"app", "Repository", "replace", "App", true},
		"a repository with a leading slash":  {"reg.io/app", "Repository", "replace", "/app", true},
		"no repository and no registry":      {"app:1", "Repository", "remove", "", false},
		"a registry that becomes impossible": {"reg.io:5000/app:1", "Registry", "add", ":6000", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			entry := policyv1alpha1.ImageOverrider{
				Component: policyv1alpha1.ImageComponent(test.component), Operator: policyv1alpha1.OverriderOperator(test.operator), Value: test.value,
			}
			got, why, err := changeImage(nil, test.image, entry)
			if err != nil || !strings.Contains(why, "not be a valid image reference") {
				t.Errorf("changed to %q (%s, %v)", got, why, err)
			}
			if err := ValidateImageOverrider(entry); (err != nil) != test.isRejected {
				t.Errorf("admission: %v, rejected %v", err, test.isRejected)
			}
		})
	}
}

func TestImageOverriderChangesContainers(t *testing.T) {
	mirror := `imageOverrider: [{component: Registry, operator: replace, value: r.x}]`
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: a}]}}`
	template := `spec: {template: {spec: {initContainers: [{image: i}], containers: [{name: a, image: a}, {name: b}]}}}`
	tests := map[string]struct{ manifest, overrider, want string }{
		"the containers of a Pod":         {pod, mirror, `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: r.x/a}]}}`},
		"an unknown kind is not changed":  {"kind: Rollout\n" + template, mirror, "kind: Rollout\n" + template},
		"a CronJob is not changed":        {"kind: CronJob\n" + template, mirror, "kind: CronJob\n" + template},
		"a workload without any template": {"{kind: Job, spec: {}}", mirror, "{kind: Job, spec: {}}"},
		"the predicate path in any kind": {
			"{kind: Rollout, spec: {images: [{at: a}, {at: b}]}}",
			`imageOverrider: [{predicate: {path: /spec/images/1/at}, component: Registry, operator: replace, value: r.x}]`,
			"{kind: Rollout, spec: {images: [{at: a}, {at: r.x/b}]}}",
		},
		"init containers by predicate only": {
			"kind: Job\n" + template,
			`imageOverrider: [{predicate: {path: /spec/template/spec/initContainers/0/image}, component: Tag, operator: add, value: "1"}]`,
			`{kind: Job, spec: {template: {spec: {initContainers: [{image: "i:1"}], containers: [{name: a, image: a}, {name: b}]}}}}`,
		},
	}
	for _, kind := range []string{"Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job"} {
		tests["the containers of a "+kind] = struct{ manifest, overrider, want string }{
			"kind: " + kind + "\n" + template, mirror,
			"kind: " + kind + "\nspec: {template: {spec: {initContainers: [{image: i}], containers: [{name: a, image: r.x/a}, {name: b}]}}}",
		}
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := applyOverriders(t, parseObject(t, tc.manifest), tc.overrider)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parseObject(t, tc.want), got); diff != "" {
				t.Errorf("manifest (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImageOverriderFails(t *testing.T) {
	for name, text := range map[string]string{
		"when the predicate does not begin with a slash": `imageOverrider: [{predicate: {path: spec/x}, component: Tag, operator: add, value: "1"}]`,
		"when the predicate path is missing":             `imageOverrider: [{predicate: {path: /spec/x}, component: Tag, operator: add, value: "1"}]`,
		"when the predicate path is a number":            `imageOverrider: [{predicate: {path: /spec/replicas}, component: Tag, operator: add, value: "1"}]`,
		"when the predicate path is not an image":        `imageOverrider: [{predicate: {path: /kind}, component: Tag, operator: add, value: "1"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := applyOverriders(t, parseObject(t, deploymentYAML), text); err == nil {
				t.Errorf("no error, result %v", got)
			}
		})
	}
}

// FuzzParseImage checks that String returns the text that was parsed.
func FuzzParseImage(f *testing.F) {
	for _, seed := range []string{"nginx", "reg:5000/a/b:1@" + sha256Digest, "localhost/a", "[::1]:1/a", "a:b/c:d", "@", ":/@"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		parsed, err := parseImage(in)
		if err != nil {
			return
		}
		if parsed.repository == "" {
			t.Errorf("%q has no repository", in)
		}
		if parsed.String() != in {
			t.Errorf("String() of %q = %q", in, parsed)
		}
	})
}
