package builtin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRetain(t *testing.T) {
	tests := map[string]struct {
		desired, observed string
		want              string // empty: the desired object itself
		wantErr           bool
	}{
		"a labelled Deployment keeps the replicas of the member": {
			desired:  `{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 2}}`,
			observed: `{spec: {replicas: 5}}`,
			want:     `{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 5}}`,
		},
		"equal replicas change nothing": {
			desired:  `{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 2}}`,
			observed: `{spec: {replicas: 2}}`,
		},
		"a labelled Deployment needs replicas in the member": {
			desired:  `{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 2}}`,
			observed: `{spec: {}}`, wantErr: true,
		},
		"the label must be true": {
			desired:  `{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "yes"}}, spec: {replicas: 2}}`,
			observed: `{spec: {replicas: 5}}`,
		},
		"the label of the member object is ignored": {
			desired:  `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}`,
			observed: `{metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 5}}`,
		},
		"a Pod keeps its node, service account and volumes, and mounts by container name": {
			desired: `{apiVersion: v1, kind: Pod, spec: {volumes: [{name: own}],
				initContainers: [{name: i}, {name: new, volumeMounts: [{name: x}]}],
				containers: [{name: a, image: v2, volumeMounts: [{name: own}]}, {name: bare, volumeMounts: [{name: own}]}]}}`,
			observed: `{spec: {nodeName: n1, serviceAccountName: default, volumes: [{name: own}, {name: token}],
				initContainers: [{name: i, volumeMounts: [{name: token}]}],
				containers: [{name: bare}, {name: a, image: v1, volumeMounts: [{name: own}, {name: token}]}]}}`,
			want: `{apiVersion: v1, kind: Pod, spec: {nodeName: n1, serviceAccountName: default, volumes: [{name: own}, {name: token}],
				initContainers: [{name: i, volumeMounts: [{name: token}]}, {name: new, volumeMounts: [{name: x}]}],
				containers: [{name: bare}, {name: a, image: v2, volumeMounts: [{name: own}, {name: token}]}]}}`,
		},
		"a Pod loses volumes that the member does not have": {
			desired:  `{apiVersion: v1, kind: Pod, spec: {nodeName: n2, serviceAccountName: robot, volumes: [{name: own}], containers: [{name: a}]}}`,
			observed: `{spec: {containers: [{name: a}]}}`,
			want:     `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}]}}`,
		},
		"a Pod keeps unset fields that the admission of the member set": {
			desired: `{apiVersion: v1, kind: Pod, spec: {securityContext: {}, nodeSelector: {a: b}, tolerations: [{key: own}],
				containers: [{name: a, image: v2, resources: {limits: {cpu: 1}}, securityContext: null}]}}`,
			observed: `{spec: {securityContext: {fsGroup: 5}, nodeSelector: {a: c, d: e}, tolerations: [{key: other}], imagePullSecrets: [{name: pull}], overhead: null,
				initContainers: [{name: proxy-init}],
				containers: [{name: proxy}, {name: a, image: v1, resources: {limits: {cpu: 2}, requests: {cpu: 1}}, securityContext: {runAsUser: 7}}]}}`,
			want: `{apiVersion: v1, kind: Pod, spec: {securityContext: {fsGroup: 5}, nodeSelector: {a: b, d: e}, tolerations: [{key: own}], imagePullSecrets: [{name: pull}],
				initContainers: [{name: proxy-init}],
				containers: [{name: proxy}, {name: a, image: v2, resources: {limits: {cpu: 1}, requests: {cpu: 1}}, securityContext: {runAsUser: 7}}]}}`,
		},
		"a Pod keeps ephemeral containers": {
			desired:  `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}]}}`,
			observed: `{spec: {containers: [{name: a}], ephemeralContainers: [{name: debugger}]}}`,
			want:     `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}], ephemeralContainers: [{name: debugger}]}}`,
		},
		"an equal Pod is not changed": {
			desired:  `{apiVersion: v1, kind: Pod, spec: {nodeName: n1, containers: [{name: a, image: b, volumeMounts: [{name: v}]}]}}`,
			observed: `{spec: {nodeName: n1, containers: [{name: a, image: b, volumeMounts: [{name: v}]}]}}`,
		},
		"a Service keeps its address and health check port": {
			desired:  `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`,
			observed: `{spec: {type: LoadBalancer, clusterIP: 10.0.0.1, healthCheckNodePort: 30100}}`,
			want:     `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, clusterIP: 10.0.0.1, healthCheckNodePort: 30100}}`,
		},
		"a Service keeps the node ports that the member allocated": {
			desired:  `{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: [{port: 80}, {port: 80, protocol: UDP}, {port: 81, nodePort: 30081}, {port: 82}]}}`,
			observed: `{spec: {type: NodePort, ports: [{port: 80, protocol: TCP, nodePort: 30080}, {port: 80, protocol: UDP, nodePort: 30180}, {port: 81, nodePort: 30999}]}}`,
			want:     `{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}, {port: 80, protocol: UDP, nodePort: 30180}, {port: 81, nodePort: 30081}, {port: 82}]}}`,
		},
		"a Service that becomes ClusterIP keeps no node ports": {
			desired:  `{apiVersion: v1, kind: Service, spec: {type: ClusterIP, ports: [{port: 80}]}}`,
			observed: `{spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}]}}`,
		},
		"malformed ports of a Service are left to the API server": {
			desired:  `{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: [{port: [80]}, 7]}}`,
			observed: `{spec: {type: NodePort, ports: {port: 80}}}`,
		},
		"a Service keeps the class that the member set": {
			desired:  `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`,
			observed: `{spec: {type: LoadBalancer, loadBalancerClass: example.com/inner}}`,
			want:     `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, loadBalancerClass: example.com/inner}}`,
		},
		"the desired class of a Service is kept": {
			desired:  `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, loadBalancerClass: example.com/outer}}`,
			observed: `{spec: {type: LoadBalancer, loadBalancerClass: example.com/inner}}`,
		},
		"a Service keeps no empty address and no port 0": {
			desired:  `{apiVersion: v1, kind: Service, spec: {}}`,
			observed: `{spec: {clusterIP: "", healthCheckNodePort: 0}}`,
		},
		"a ServiceAccount keeps other secrets of the member": {
			desired:  `{apiVersion: v1, kind: ServiceAccount, secrets: [{name: b, namespace: own}], imagePullSecrets: []}`,
			observed: `{secrets: [{name: a}, {name: b}], imagePullSecrets: [{name: pull}]}`,
			want:     `{apiVersion: v1, kind: ServiceAccount, secrets: [{name: b, namespace: own}, {name: a}], imagePullSecrets: [{name: pull}]}`,
		},
		"a ServiceAccount with all secrets is not changed": {
			desired:  `{apiVersion: v1, kind: ServiceAccount, secrets: [{name: b}, {name: c}]}`,
			observed: `{secrets: [{name: b}]}`,
		},
		"a claim keeps its volume": {
			desired:  `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {}}`,
			observed: `{spec: {volumeName: pv1}}`,
			want:     `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: pv1}}`,
		},
		"a claim keeps no empty volume": {
			desired:  `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: pv2}}`,
			observed: `{spec: {volumeName: ""}}`,
		},
		"a claim keeps the classes that the member set": {
			desired:  `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce]}}`,
			observed: `{spec: {accessModes: [ReadWriteOnce], volumeName: pv1, storageClassName: standard, volumeAttributesClassName: gold}}`,
			want:     `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce], volumeName: pv1, storageClassName: standard, volumeAttributesClassName: gold}}`,
		},
		"the desired class of a claim is kept, even if empty": {
			desired:  `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: "", volumeAttributesClassName: gold}}`,
			observed: `{spec: {storageClassName: standard, volumeAttributesClassName: silver}}`,
		},
		"a volume keeps its claim": {
			desired:  `{apiVersion: v1, kind: PersistentVolume, spec: {}}`,
			observed: `{spec: {claimRef: {name: c, uid: u}}}`,
			want:     `{apiVersion: v1, kind: PersistentVolume, spec: {claimRef: {name: c, uid: u}}}`,
		},
		"a volume without a claim": {
			desired: `{apiVersion: v1, kind: PersistentVolume, spec: {}}`, observed: `{spec: {}}`,
		},
		"a Job keeps the selector and the pod labels": {
			desired:  `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 2, template: {metadata: {labels: {app: a}}}}}`,
			observed: `{spec: {parallelism: 1, selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {app: a, controller-uid: u}}}}}`,
			want:     `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 2, selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {app: a, controller-uid: u}}}}}`,
		},
		"a Job without labels in the member": {
			desired:  `{apiVersion: batch/v1, kind: Job, spec: {selector: {matchLabels: {a: b}}}}`,
			observed: `{spec: {}}`,
		},
		"a token Secret keeps its data": {
			desired:  `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, data: null}`,
			observed: `{type: kubernetes.io/service-account-token, data: {token: dG9rZW4=}}`,
			want:     `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, data: {token: dG9rZW4=}}`,
		},
		"another Secret does not keep its data": {
			desired:  `{apiVersion: v1, kind: Secret, type: Opaque, data: {a: YQ==}}`,
			observed: `{type: kubernetes.io/service-account-token, data: {token: dG9rZW4=}}`,
		},
		"an Ingress keeps the class that the member set": {
			desired:  `{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {rules: []}}`,
			observed: `{spec: {ingressClassName: nginx, rules: [{host: a}]}}`,
			want:     `{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {ingressClassName: nginx, rules: []}}`,
		},
		"the desired class of an Ingress is kept": {
			desired:  `{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {ingressClassName: inner}}`,
			observed: `{spec: {ingressClassName: nginx}}`,
		},
		"an aggregated ClusterRole keeps the rules of the member": {
			desired:  `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: []}, rules: []}`,
			observed: `{rules: [{verbs: [get]}]}`,
			want:     `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: []}, rules: [{verbs: [get]}]}`,
		},
		"an aggregated ClusterRole without rules in the member has none": {
			desired:  `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: []}, rules: [{verbs: [get]}]}`,
			observed: `{metadata: {}}`,
			want:     `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: []}}`,
		},
		"an aggregated ClusterRole without rules is not changed": {
			desired:  `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: []}, rules: null}`,
			observed: `{rules: null}`,
		},
		"the desired rules of a ClusterRole without aggregation are kept": {
			desired:  `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: [{verbs: [get]}]}`,
			observed: `{aggregationRule: {}, rules: [{verbs: [list]}]}`,
		},
		"an invalid member object is an error": {
			desired:  `{apiVersion: v1, kind: Service, spec: {}}`,
			observed: `{spec: {healthCheckNodePort: high}}`, wantErr: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			desired, observed := parseObject(t, test.desired), parseObject(t, test.observed)
			desiredBefore, observedBefore := desired.DeepCopy(), observed.DeepCopy()
			got, err := rulesFor(desired).Retain(t.Context(), desired, observed)
			if (err != nil) != test.wantErr {
				t.Fatalf("error = %v, want error %v", err, test.wantErr)
			}
			if diff := cmp.Diff(desiredBefore, desired); diff != "" {
				t.Errorf("the desired object was modified:\n%s", diff)
			}
			if diff := cmp.Diff(observedBefore, observed); diff != "" {
				t.Errorf("the member object was modified:\n%s", diff)
			}
			if err != nil {
				return
			}
			if test.want == "" {
				if got != desired {
					t.Errorf("the desired object was replaced by %v", got)
				}
				return
			}
			if diff := cmp.Diff(parseObject(t, test.want), got); diff != "" {
				t.Errorf("result differs (-want +got):\n%s", diff)
			}
		})
	}
}
