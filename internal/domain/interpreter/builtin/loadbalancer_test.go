package builtin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAggregateLoadBalancers(t *testing.T) {
	const service = `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, `
	tests := map[string]struct {
		template string
		statuses []string
		want     string // empty: the template itself
	}{
		"entries are merged and sorted by hostname, empty last, then ip": {
			template: service + `status: {loadBalancer: {ingress: [{ip: 9.9.9.9}]}, conditions: [{type: x, status: "True"}]}}`,
			statuses: []string{
				`{loadBalancer: {ingress: [{ip: 2.2.2.2}, {hostname: b}]}}`, noStatus,
				`{loadBalancer: {ingress: [{ip: 1.1.1.1}, {hostname: a, ip: 2.2.2.2}, {hostname: a, ip: 1.1.1.1}]}}`,
			},
			want: `{loadBalancer: {ingress: [{hostname: a, ip: 1.1.1.1}, {hostname: a, ip: 2.2.2.2}, {hostname: b}, {ip: 1.1.1.1}, {ip: 2.2.2.2}]}}`,
		},
		"equal entries are unique": {
			template: service + `}`,
			statuses: []string{`{loadBalancer: {ingress: [{ip: 1.1.1.1}]}}`, `{loadBalancer: {ingress: [{ip: 1.1.1.1}]}}`},
			want:     `{loadBalancer: {ingress: [{ip: 1.1.1.1}]}}`,
		},
		"entries with different modes are different, no mode is last": {
			template: service + `}`,
			statuses: []string{`{loadBalancer: {ingress: [{ip: 1.1.1.1}, {ip: 1.1.1.1, ipMode: VIP}]}}`, `{loadBalancer: {ingress: [{ip: 1.1.1.1, ipMode: Proxy}, {ip: 1.1.1.1, ipMode: VIP}]}}`},
			want:     `{loadBalancer: {ingress: [{ip: 1.1.1.1, ipMode: Proxy}, {ip: 1.1.1.1, ipMode: VIP}, {ip: 1.1.1.1}]}}`,
		},
		"ports of equal entries are merged and sorted": {
			template: service + `}`,
			statuses: []string{
				`{loadBalancer: {ingress: [{ip: 1.1.1.1, ports: [{port: 443, protocol: TCP}, {port: 53, protocol: UDP}]}]}}`,
				`{loadBalancer: {ingress: [{ip: 1.1.1.1, ports: [{port: 53, protocol: UDP, error: broken}, {port: 53, protocol: TCP}, {port: 443, protocol: TCP}]}]}}`,
			},
			want: `{loadBalancer: {ingress: [{ip: 1.1.1.1, ports: [{port: 53, protocol: TCP}, {port: 53, protocol: UDP}, {port: 53, protocol: UDP, error: broken}, {port: 443, protocol: TCP}]}]}}`,
		},
		"without entries the load balancer is empty": {
			template: service + `status: {loadBalancer: {ingress: [{ip: 9.9.9.9}]}}}`, statuses: []string{noStatus}, want: `{loadBalancer: {}}`,
		},
		"an equal status is not changed": {
			template: service + `status: {loadBalancer: {ingress: [{ip: 1.1.1.1}]}}}`, statuses: []string{`{loadBalancer: {ingress: [{ip: 1.1.1.1}]}}`},
		},
		"a default mode of the API server is kept": {
			template: service + `status: {loadBalancer: {ingress: [{ip: 1.1.1.1, ipMode: VIP}, {ip: 2.2.2.2, ipMode: VIP}]}}}`,
			statuses: []string{`{loadBalancer: {ingress: [{ip: 1.1.1.1}]}}`, `{loadBalancer: {ingress: [{ip: 2.2.2.2, ipMode: VIP}]}}`},
		},
		"a mode that a member removes is removed": {
			template: service + `status: {loadBalancer: {ingress: [{ip: 1.1.1.1, ipMode: Proxy}]}}}`,
			statuses: []string{`{loadBalancer: {ingress: [{ip: 1.1.1.1}]}}`},
			want:     `{loadBalancer: {ingress: [{ip: 1.1.1.1}]}}`,
		},
		"other Services are not changed": {
			template: `{apiVersion: v1, kind: Service, spec: {type: NodePort}, status: {loadBalancer: {}}}`,
			statuses: []string{`{loadBalancer: {ingress: [{ip: 1.1.1.1}]}}`},
		},
		"Ingresses": {
			template: `{apiVersion: networking.k8s.io/v1, kind: Ingress}`,
			statuses: []string{`{loadBalancer: {ingress: [{ip: 2.2.2.2}]}}`, `{loadBalancer: {ingress: [{hostname: a}, {ip: 2.2.2.2, ports: [{port: 80, protocol: TCP}]}]}}`},
			want:     `{loadBalancer: {ingress: [{hostname: a}, {ip: 2.2.2.2, ports: [{port: 80, protocol: TCP}]}]}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := parseObject(t, test.template)
			got, err := rulesFor(template).AggregateStatus(t.Context(), template, newItems(t, test.statuses...))
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				if got != template {
					t.Errorf("the template was replaced by %v", got)
				}
				return
			}
			if diff := cmp.Diff(parseMap(t, test.want), aggregateStatus(t, template, newItems(t, test.statuses...))); diff != "" {
				t.Errorf("status differs (-want +got):\n%s", diff)
			}
		})
	}
}
