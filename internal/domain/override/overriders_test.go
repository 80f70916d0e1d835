package override

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOverriders(t *testing.T) {
	container := func(fields string) string {
		return "{kind: Pod, metadata: {name: p}, spec: {containers: [{name: web" + fields + "}, {name: side}]}}"
	}
	tests := map[string]struct{ manifest, overriders, want string }{
		"command add appends": {
			container(", command: [a]"), `commandOverrider: [{containerName: web, operator: add, value: [b, c]}]`, container(", command: [a, b, c]"),
		},
		"command remove drops every equal element": {
			container(", command: [a, b, a]"), `commandOverrider: [{containerName: web, operator: remove, value: [a, x]}]`, container(", command: [b]"),
		},
		"args add creates a missing field": {
			container(""), `argsOverrider: [{containerName: web, operator: add, value: [b]}]`, container(", args: [b]"),
		},
		"args remove makes a missing field an empty list": {
			container(""), `argsOverrider: [{containerName: web, operator: remove, value: [b]}]`, container(", args: []"),
		},
		"a container of another name is not changed": {
			container(""), `argsOverrider: [{containerName: none, operator: add, value: [b]}]`, container(""),
		},
		"labels add creates the map": {
			"{kind: X, metadata: {name: x}}", `labelsOverrider: [{operator: add, value: {a: b}}]`, "{kind: X, metadata: {name: x, labels: {a: b}}}",
		},
		"labels add overwrites": {
			"{kind: X, metadata: {labels: {a: b}}}", `labelsOverrider: [{operator: add, value: {a: c}}]`, "{kind: X, metadata: {labels: {a: c}}}",
		},
		"labels replace changes existing keys only": {
			"{kind: X, metadata: {labels: {a: b}}}", `labelsOverrider: [{operator: replace, value: {a: c, d: e}}]`, "{kind: X, metadata: {labels: {a: c}}}",
		},
		"annotations remove changes existing keys only": {
			"{kind: X, metadata: {annotations: {a: b, c: d}}}", `annotationsOverrider: [{operator: remove, value: {a: "", e: ""}}]`,
			"{kind: X, metadata: {annotations: {c: d}}}",
		},
		"annotations remove without annotations": {
			"{kind: X, metadata: {name: x}}", `annotationsOverrider: [{operator: remove, value: {a: ""}}]`, "{kind: X, metadata: {name: x}}",
		},
		"plaintext is applied in order": {
			"{kind: X, spec: {}}",
			`plaintext: [{path: /spec/list, operator: add, value: [1]}, {path: /spec/list/0, operator: add, value: 0}, {path: /spec/list/-, operator: add, value: 2}]`,
			"{kind: X, spec: {list: [0, 1, 2]}}",
		},
		"plaintext add overwrites a field": {
			"{kind: X, spec: {a: 1}}", `plaintext: [{path: /spec/a, operator: add, value: {b: [true, null, 1.5]}}]`, "{kind: X, spec: {a: {b: [true, null, 1.5]}}}",
		},
		"plaintext remove from a list": {
			"{kind: X, spec: [a, b, c]}", `plaintext: [{path: /spec/1, operator: remove}]`, "{kind: X, spec: [a, c]}",
		},
		"plaintext with a negative index": {
			"{kind: X, spec: [a, b, c]}", `plaintext: [{path: /spec/-1, operator: replace, value: z}]`, "{kind: X, spec: [a, b, z]}",
		},
		"paths with escapes": {
			"{kind: X, metadata: {annotations: {a/b~c: d}}}", `plaintext: [{path: /metadata/annotations/a~1b~0c, operator: replace, value: e}]`,
			"{kind: X, metadata: {annotations: {a/b~c: e}}}",
		},
		"plaintext without a value is null": {
			"{kind: X, spec: {a: 1}}", `plaintext: [{path: /spec/a, operator: replace}]`, "{kind: X, spec: {a: null}}",
		},
		"a document in YAML": {
			"{kind: ConfigMap, data: {f: \"# why\\nb: 1\\na:\\n- x: 1\\n\"}}",
			`fieldOverrider: [{fieldPath: /data/f, yaml: [{subPath: /a/0/x, operator: replace, value: 2}, {subPath: /c, operator: add, value: true}]}]`,
			"{kind: ConfigMap, data: {f: \"a:\\n- x: 2\\nb: 1\\nc: true\\n\"}}",
		},
		"a single YAML document between markers": {
			`{kind: ConfigMap, data: {f: "%YAML 1.1\n# why\n---\na: |\n  x\n  ---\n  y\n---\n# no more\n"}}`,
			`fieldOverrider: [{fieldPath: /data/f, yaml: [{subPath: /b, operator: add, value: 1}]}]`,
			`{kind: ConfigMap, data: {f: "a: |\n  x\n  ---\n  y\nb: 1\n"}}`,
		},
		"a YAML document on the line of its marker": {
			`{kind: ConfigMap, data: {f: "--- {a: 1}\n"}}`, `fieldOverrider: [{fieldPath: /data/f, yaml: [{subPath: /b, operator: add, value: 2}]}]`,
			`{kind: ConfigMap, data: {f: "a: 1\nb: 2\n"}}`,
		},
		"a document in JSON": {
			`{kind: ConfigMap, data: {f: '{"b": [1, 2], "a": "<&>", "big": 12345678901234567890, "f": 1.0}'}}`,
			`fieldOverrider: [{fieldPath: /data/f, json: [{subPath: /b/0, operator: remove}]}]`,
			`{kind: ConfigMap, data: {f: '{"a":"<&>","b":[2],"big":12345678901234567890,"f":1.0}'}}`,
		},
		"a list as a document": {
			`{kind: ConfigMap, data: {f: '[1]'}}`, `fieldOverrider: [{fieldPath: /data/f, json: [{subPath: /-, operator: add, value: 2}]}]`,
			`{kind: ConfigMap, data: {f: '[1,2]'}}`,
		},
		"a document without operations is not changed": {
			`{kind: ConfigMap, data: {f: '{ "a" : 1 }'}}`, `fieldOverrider: [{fieldPath: /data/f}]`, `{kind: ConfigMap, data: {f: '{ "a" : 1 }'}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := applyOverriders(t, parseObject(t, tc.manifest), tc.overriders)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parseObject(t, tc.want), got); diff != "" {
				t.Errorf("manifest (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverridersRejectInvalid(t *testing.T) {
	tests := map[string]struct{ manifest, overriders, path string }{
		"replacing a missing field":           {"{kind: X, spec: {}}", `plaintext: [{path: /spec/a, operator: replace, value: 1}]`, "/spec/a"},
		"removing a missing field":            {"{kind: X, spec: {}}", `plaintext: [{path: /spec/a, operator: remove}]`, "/spec/a"},
		"adding below a missing field":        {"{kind: X, spec: {}}", `plaintext: [{path: /spec/a/b, operator: add, value: 1}]`, "/spec/a/b"},
		"adding below a string":               {"{kind: X, spec: s}", `plaintext: [{path: /spec/a, operator: add, value: 1}]`, "/spec/a"},
		"a word as an index":                  {"{kind: X, spec: [1]}", `plaintext: [{path: /spec/a, operator: add, value: 1}]`, "/spec/a"},
		"an index after the end":              {"{kind: X, spec: [1]}", `plaintext: [{path: /spec/1, operator: replace, value: 1}]`, "/spec/1"},
		"inserting after the end":             {"{kind: X, spec: [1]}", `plaintext: [{path: /spec/2, operator: add, value: 1}]`, "/spec/2"},
		"replacing the end of a list":         {"{kind: X, spec: [1]}", `plaintext: [{path: /spec/-, operator: replace, value: 1}]`, "/spec/-"},
		"a path without a slash":              {"{kind: X}", `plaintext: [{path: kind, operator: replace, value: Y}]`, "kind"},
		"making the manifest a list":          {"{kind: X}", `plaintext: [{path: "", operator: replace, value: []}]`, ""},
		"removing the manifest":               {"{kind: X}", `plaintext: [{path: "", operator: remove}]`, ""},
		"an unknown operator":                 {"{kind: X, spec: {a: 1}}", `plaintext: [{path: /spec/a, operator: move}]`, "/spec/a"},
		"an unknown operator on labels":       {"{kind: X}", `labelsOverrider: [{operator: move, value: {a: b}}]`, "/metadata/labels"},
		"replacing args":                      {"{kind: Pod, spec: {containers: [{name: a}]}}", `argsOverrider: [{containerName: a, operator: replace}]`, "/spec/containers/0/args"},
		"args that are not a list of strings": {"{kind: Pod, spec: {containers: [{name: a, args: [1]}]}}", `argsOverrider: [{containerName: a, operator: add}]`, "/spec/containers/0/args"},
		"containers that are not a list":      {"{kind: Pod, spec: {containers: 1}}", `argsOverrider: [{containerName: a, operator: add}]`, "/spec/containers"},
		"labels that are not a map":           {"{kind: X, metadata: {labels: 1}}", `labelsOverrider: [{operator: add, value: {a: b}}]`, "/metadata/labels"},
		"a document in a missing field":       {"{kind: X, data: {}}", `fieldOverrider: [{fieldPath: /data/f, json: [{subPath: /a, operator: remove}]}]`, "/data/f"},
		"a document in a number":              {"{kind: X, data: {f: 1}}", `fieldOverrider: [{fieldPath: /data/f, json: [{subPath: /a, operator: remove}]}]`, "/data/f"},
		"a document that is not JSON":         {"{kind: X, data: {f: '{'}}", `fieldOverrider: [{fieldPath: /data/f, json: [{subPath: /a, operator: remove}]}]`, "/data/f"},
		"two documents in one field":          {"{kind: X, data: {f: '{} {}'}}", `fieldOverrider: [{fieldPath: /data/f, json: [{subPath: /a, operator: add, value: 1}]}]`, "/data/f"},
		"two YAML documents in one field":     {"{kind: X, data: {f: \"a: 1\\n---\\nb: 2\\n\"}}", `fieldOverrider: [{fieldPath: /data/f, yaml: [{subPath: /a, operator: replace, value: 2}]}]`, "/data/f"},
		"a document that is not YAML":         {"{kind: X, data: {f: 'a: b: c'}}", `fieldOverrider: [{fieldPath: /data/f, yaml: [{subPath: /a, operator: remove}]}]`, "/data/f"},
		"a missing path inside a document":    {"{kind: X, data: {f: '{}'}}", `fieldOverrider: [{fieldPath: /data/f, json: [{subPath: /a, operator: remove}]}]`, "/data/f"},
		"adding below an empty YAML text":     {"{kind: X, data: {f: ''}}", `fieldOverrider: [{fieldPath: /data/f, yaml: [{subPath: /a, operator: add, value: 1}]}]`, "/data/f"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			manifest := parseObject(t, tc.manifest)
			before := manifest.DeepCopy()
			_, err := applyOverriders(t, manifest, tc.overriders)
			var failure *RuleError
			if !errors.As(err, &failure) {
				t.Fatalf("got %v, want a RuleError", err)
			}
			if failure.Path != tc.path {
				t.Errorf("path %q, want %q", failure.Path, tc.path)
			}
			if diff := cmp.Diff(before, manifest); diff != "" {
				t.Errorf("the manifest was changed: %s", diff)
			}
		})
	}
}
