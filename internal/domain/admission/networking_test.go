package admission

import "testing"

func TestMultiClusterServiceRules(t *testing.T) {
	service := func(rest string) string { return `{kind: MultiClusterService, metadata: {name: s}, ` + rest + `}` }
	runValidationCases(t, map[string]validationCase{
		"a valid service":        {new: validMultiClusterService},
		"a name is a label":      {new: `{kind: MultiClusterService, metadata: {name: 1s}, spec: {types: []}}`, errors: []string{"FieldValueInvalid metadata.name"}},
		"types are known":        {new: service(`spec: {types: [Other]}`), errors: []string{"FieldValueNotSupported spec.types[0]"}},
		"there is one type":      {new: service(`spec: {types: [CrossCluster, LoadBalancer]}`), errors: []string{"FieldValueInvalid spec.types"}},
		"a type may be repeated": {new: service(`spec: {types: [CrossCluster, CrossCluster]}`)},
		"types are immutable": {
			old: service(`spec: {types: [LoadBalancer]}`), new: service(`spec: {types: [CrossCluster]}`),
			errors: []string{"FieldValueInvalid spec.types"},
		},
		"ports are validated, and have no effect": {
			new:      service(`spec: {types: [], ports: [{name: a, port: 80}, {name: a, port: 0}, {name: A, port: 65535}, {port: 1}, {port: 2}]}`),
			errors:   []string{"FieldValueDuplicate spec.ports[1].name", "FieldValueInvalid spec.ports[1].port", "FieldValueInvalid spec.ports[2].name"},
			warnings: []string{"spec.ports"},
		},
		"clusters have names of clusters": {
			new:    service(`spec: {types: [], providerClusters: [{name: A}], consumerClusters: [{name: ""}]}`),
			errors: []string{"FieldValueInvalid spec.providerClusters[0].name", "FieldValueInvalid spec.consumerClusters[0].name"},
		},
		"deprecated fields have no effect": {
			new:      service(`spec: {types: [], range: {clusterNames: [m1]}, serviceProvisionClusters: [m1], serviceConsumptionClusters: [m1]}`),
			warnings: []string{"spec.range", "spec.serviceProvisionClusters", "spec.serviceConsumptionClusters"},
		},
		"the load balancer is validated on update": {
			old:    service(`spec: {types: []}`),
			new:    service(`spec: {types: []}, status: {loadBalancer: {ingress: [{ip: x, hostname: 1.2.3.4}, {hostname: a.b, ipMode: VIP}, {ip: "::1", ipMode: No}]}}`),
			errors: []string{"FieldValueInvalid status.loadBalancer.ingress[0].ip", "FieldValueInvalid status.loadBalancer.ingress[0].hostname", "FieldValueForbidden status.loadBalancer.ingress[1].ipMode", "FieldValueNotSupported status.loadBalancer.ingress[2].ipMode"},
		},
	})
}

func TestMultiClusterIngressRules(t *testing.T) {
	ingress := func(spec string) string {
		return `{kind: MultiClusterIngress, metadata: {name: i}, spec: {` + spec + `}}`
	}
	backend := func(backend string) string { return ingress(`defaultBackend: ` + backend) }
	path := func(path string) string {
		return ingress(`rules: [{http: {paths: [{backend: {service: {name: s, port: {number: 1}}}, ` + path + `}]}}]`)
	}
	const prefix = "spec.rules[0].http.paths[0]."
	runValidationCases(t, map[string]validationCase{
		"a valid ingress":                             {new: validIngress},
		"a backend or a rule is required":             {new: ingress(``), errors: []string{"FieldValueInvalid spec"}},
		"an empty backend":                            {new: backend(`{}`), errors: []string{"FieldValueRequired spec.defaultBackend"}},
		"a backend with two targets":                  {new: backend(`{service: {name: s, port: {number: 1}}, resource: {kind: K, name: thing}}`), errors: []string{"FieldValueInvalid spec.defaultBackend"}},
		"a resource has kind and name":                {new: backend(`{resource: {apiGroup: A, kind: "", name: ""}}`), errors: []string{"FieldValueRequired spec.defaultBackend.resource.kind", "FieldValueRequired spec.defaultBackend.resource.name", "FieldValueInvalid spec.defaultBackend.resource.apiGroup"}},
		"a service has a name":                        {new: backend(`{service: {name: "", port: {number: 1}}}`), errors: []string{"FieldValueRequired spec.defaultBackend.service.name"}},
		"a service has a port":                        {new: backend(`{service: {name: s}}`), errors: []string{"FieldValueRequired spec.defaultBackend.service.port"}},
		"a service has one port":                      {new: backend(`{service: {name: s, port: {name: a, number: 1}}}`), errors: []string{"FieldValueRequired spec.defaultBackend.service.port"}},
		"a port name is short":                        {new: backend(`{service: {name: s, port: {name: aaaaaaaaaaaaaaaa}}}`), errors: []string{"FieldValueInvalid spec.defaultBackend.service.port.name"}},
		"a port number is a port":                     {new: backend(`{service: {name: s, port: {number: 65536}}}`), errors: []string{"FieldValueInvalid spec.defaultBackend.service.port.number"}},
		"a host is a name":                            {new: ingress(`rules: [{host: 1.2.3.4}, {host: "*.a"}, {host: "a.*"}]`), errors: []string{"FieldValueInvalid spec.rules[0].host", "FieldValueInvalid spec.rules[2].host"}},
		"a rule has paths":                            {new: ingress(`rules: [{http: {paths: []}}]`), errors: []string{"FieldValueRequired spec.rules[0].http.paths"}},
		"a path has a type":                           {new: path(`path: /`), errors: []string{"FieldValueRequired " + prefix + "pathType"}},
		"a path has a known type":                     {new: path(`path: /, pathType: Glob`), errors: []string{"FieldValueNotSupported " + prefix + "pathType"}},
		"a path is absolute":                          {new: path(`path: a, pathType: Exact`), errors: []string{"FieldValueInvalid " + prefix + "path"}},
		"an implementation-specific path is absolute": {new: path(`path: a, pathType: ImplementationSpecific`), errors: []string{"FieldValueInvalid " + prefix + "path"}},
		"a path is canonical":                         {new: path(`path: /a//b/../c%2f., pathType: Prefix`), errors: []string{"FieldValueInvalid " + prefix + "path", "FieldValueInvalid " + prefix + "path", "FieldValueInvalid " + prefix + "path"}},
		"a path does not end with ..":                 {new: path(`path: /a/.., pathType: Prefix`), errors: []string{"FieldValueInvalid " + prefix + "path"}},
		"tls names hosts and a secret":                {new: ingress(`defaultBackend: {service: {name: s, port: {number: 1}}}, tls: [{hosts: [A], secretName: A}]`), errors: []string{"FieldValueInvalid spec.tls[0].hosts[0]", "FieldValueInvalid spec.tls[0].secretName"}},
		"a class is a name":                           {new: ingress(`ingressClassName: A, defaultBackend: {service: {name: s, port: {number: 1}}}`), errors: []string{"FieldValueInvalid spec.ingressClassName"}},
		"an update keeps the identity": {
			old:    `{kind: MultiClusterIngress, metadata: {name: i, uid: a, resourceVersion: "1"}, spec: {defaultBackend: {service: {name: s, port: {number: 1}}}}}`,
			new:    `{kind: MultiClusterIngress, metadata: {name: i, uid: b, resourceVersion: "1"}, spec: {defaultBackend: {service: {name: s, port: {number: 1}}}}, status: {loadBalancer: {ingress: [{ip: x}]}}}`,
			errors: []string{"FieldValueInvalid metadata.uid", "FieldValueInvalid status.loadBalancer.ingress[0].ip"},
		},
	})
}
