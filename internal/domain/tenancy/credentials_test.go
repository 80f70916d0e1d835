package tenancy

import "testing"

func TestCheckSystemLabel(t *testing.T) {
	tests := map[string]struct {
		object string
		want   string
	}{
		"credentials of a cluster": {
			`{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: east, labels: {karmada.io/system: "true"}}}`,
			"Secret shop/east is never propagated: the label karmada.io/system=true marks it as one of the control plane, such as the credentials of a cluster; remove the label from a Secret that holds none",
		},
		"a Secret of a tenant":        {`{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: east, labels: {app: web}}}`, ""},
		"another value of the label":  {`{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: east, labels: {karmada.io/system: "false"}}}`, ""},
		"another kind with the label": {`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: east, labels: {karmada.io/system: "true"}}}`, ""},
		"a Secret of another group":   {`{apiVersion: example.io/v1, kind: Secret, metadata: {namespace: shop, name: east, labels: {karmada.io/system: "true"}}}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if refusal := CheckSystemLabel(parseObject(t, tc.object)); refusal != nil {
				got = refusal.Error()
			}
			if got != tc.want {
				t.Errorf("refusal %q, want %q", got, tc.want)
			}
		})
	}
}
