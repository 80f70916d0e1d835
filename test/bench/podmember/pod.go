package podmember

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// Words that a search finds: CommonWord is in each Pod, and RareWord in those whose number is a multiple
// of RareInterval.
const (
	CommonWord   = "nginx"
	RareWord     = "rareword"
	RareInterval = 33_333
)

// ChangeAnnotation is the annotation with the number of the last change of a Pod.
const ChangeAnnotation = "bench.example.com/change"

// servicePods is the number of neighboring Pods that belong to one service.
const servicePods = 8

// podTemplate is a Pod as a Deployment creates it. The names in braces are replaced.
const podTemplate = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"{service}-{hash}-{suffix}","generateName":"{service}-{hash}-",` +
	`"namespace":"{namespace}","uid":"{uid}","resourceVersion":"{version}","generation":1,"creationTimestamp":"{time}",` +
	`"labels":{"app":"{service}","pod-template-hash":"{hash}","team":"{namespace}","tier":"web","version":"v{digit}"},` +
	`"annotations":{"` + ChangeAnnotation + `":"{change}","checksum/config":"{hex16}{hash}","example.com/note":"managed by the platform team{words}","prometheus.io/scrape":"true"},` +
	`"ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":"{service}-{hash}","uid":"{owner}"}]},` +
	`"spec":{"containers":[{"env":[{"name":"SERVICE_NAME","value":"{service}"},` +
	`{"name":"DATABASE_URL","value":"postgres://db-{service}.example.org:5432/{service}"},` +
	`{"name":"POD_IP","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}}],` +
	`"image":"registry.example.org/library/nginx:1.{digit}","imagePullPolicy":"IfNotPresent",` +
	`"livenessProbe":{"failureThreshold":3,"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"periodSeconds":10},` +
	`"name":"{service}","ports":[{"containerPort":8080,"name":"http","protocol":"TCP"}],` +
	`"resources":{"limits":{"cpu":"500m","memory":"512Mi"},"requests":{"cpu":"{digit}50m","memory":"256Mi"}},` +
	`"terminationMessagePath":"/dev/termination-log",` +
	`"volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-{hex5}","readOnly":true}]}],` +
	`"dnsPolicy":"ClusterFirst","nodeName":"{node}.example.org","priority":0,"restartPolicy":"Always",` +
	`"schedulerName":"default-scheduler","securityContext":{"runAsNonRoot":true},"serviceAccount":"{service}","serviceAccountName":"{service}","terminationGracePeriodSeconds":30,` +
	`"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300}],` +
	`"volumes":[{"name":"kube-api-access-{hex5}","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}}]}}]},` +
	`"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"{time}","status":"True","type":"Initialized"},{"lastProbeTime":null,"lastTransitionTime":"{ready}","status":"True","type":"Ready"},` +
	`{"lastProbeTime":null,"lastTransitionTime":"{ready}","status":"True","type":"ContainersReady"},{"lastProbeTime":null,"lastTransitionTime":"{time}","status":"True","type":"PodScheduled"}],` +
	`"containerStatuses":[{"containerID":"containerd://{hex16}{uid16}{owner16}{hex16}","image":"registry.example.org/library/nginx:1.{digit}",` +
	`"imageID":"registry.example.org/library/nginx@sha256:5d32e1f0a86a4b0c9f3f1f3c2b1a09d8e7f6a5b4c3d2e1f00f1e2d3c4b5a6978","name":"{service}","ready":true,"restartCount":{digit},"started":true,` +
	`"state":{"running":{"startedAt":"{ready}"}}}],"hostIP":"10.0.{octet}.7","phase":"Running","podIP":"10.{octet}.{octet2}.{octet3}","podIPs":[{"ip":"10.{octet}.{octet2}.{octet3}"}],"qosClass":"Burstable","startTime":"{time}"}}`

// segment is a part of podTemplate: a text, and the name of the value after it.
type segment struct{ text, name string }

// parseTemplate splits a template. Braces of JSON are followed by a quote or a brace.
func parseTemplate(template string) []segment {
	var segments []segment
	begin := 0
	for i := 0; i < len(template); i++ {
		if template[i] != '{' || template[i+1] < 'a' || template[i+1] > 'z' {
			continue
		}
		end := i + strings.IndexByte(template[i:], '}')
		segments = append(segments, segment{template[begin:i], template[i+1 : end]})
		begin, i = end+1, end
	}
	return append(segments, segment{text: template[begin:]})
}

// generator generates the Pods of one member. The same number always leads to the same Pod, so no Pod is
// kept in memory. Pods are ordered by namespace and name, as in an API server.
type generator struct {
	segments []segment
	options  Options
}

// namespace returns the namespace of a Pod.
func (g *generator) namespace(i int) string {
	return Namespace(i * g.options.Namespaces / g.options.Pods)
}

// Namespace returns the name of a namespace.
func Namespace(number int) string { return fmt.Sprintf("team-%03d", number) }

// inNamespace returns the numbers of the Pods of a namespace: from begin to end - 1.
func (g *generator) inNamespace(namespace string) (begin, end int) {
	for end < g.options.Pods && g.namespace(end) <= namespace {
		if g.namespace(end) < namespace {
			begin = end + 1
		}
		end++
	}
	return begin, end
}

// append appends the JSON of a Pod to dst.
func (g *generator) append(dst []byte, i int, version, change int64) []byte {
	seed := uint64(g.options.Member)<<32 | uint64(i)
	service := i / servicePods
	for _, s := range g.segments {
		dst = append(dst, s.text...)
		switch s.name {
		case "":
		case "version":
			dst = strconv.AppendInt(dst, version, 10)
		case "change":
			dst = strconv.AppendInt(dst, change, 10)
		case "namespace":
			dst = append(dst, g.namespace(i)...)
		case "service":
			dst = fmt.Appendf(dst, "service-%05d", service)
		case "hash":
			dst = fmt.Appendf(dst, "%010x", mix(uint64(g.options.Member)<<32|uint64(service), 1)>>24)
		case "suffix":
			dst = fmt.Appendf(dst, "%x%04x", i%servicePods, mix(seed, 2)>>48)
		case "words":
			if (g.options.Member*g.options.Pods+i)%RareInterval == 0 {
				dst = append(dst, " "+RareWord...)
			}
		default:
			dst = appendValue(dst, s.name, seed, uint64(g.options.Member)<<32|uint64(service))
		}
	}
	return dst
}

// appendValue appends a value that differs in each Pod, or in each service.
func appendValue(dst []byte, name string, seed, service uint64) []byte {
	switch name {
	case "uid":
		return appendUID(dst, mix(seed, 3), mix(seed, 4))
	case "owner":
		return appendUID(dst, mix(service, 5), mix(service, 6))
	case "uid16":
		return fmt.Appendf(dst, "%016x", mix(seed, 7))
	case "owner16":
		return fmt.Appendf(dst, "%016x", mix(seed, 8))
	case "hex16":
		return fmt.Appendf(dst, "%016x", mix(seed, 9))
	case "hex5":
		return fmt.Appendf(dst, "%05x", mix(seed, 10)>>44)
	case "digit":
		return strconv.AppendUint(dst, mix(service, 11)%10, 10)
	case "node":
		return fmt.Appendf(dst, "node-%03d", mix(seed, 12)%300)
	case "time":
		return appendTime(dst, mix(seed, 13))
	case "ready":
		return appendTime(dst, mix(seed, 14))
	case "octet":
		return strconv.AppendUint(dst, mix(seed, 15)%256, 10)
	case "octet2":
		return strconv.AppendUint(dst, mix(seed, 16)%256, 10)
	default:
		return strconv.AppendUint(dst, mix(seed, 17)%256, 10)
	}
}

func appendUID(dst []byte, high, low uint64) []byte {
	return fmt.Appendf(dst, "%08x-%04x-4%03x-8%03x-%012x", high>>32, high>>16&0xffff, high&0xfff, low>>52, low&0xffffffffffff)
}

func appendTime(dst []byte, value uint64) []byte {
	return fmt.Appendf(dst, "2026-11-%02dT%02d:%02d:%02dZ", 1+value%24, value>>8%24, value>>16%60, value>>24%60)
}

// mix returns a number that looks random (SplitMix64).
func mix(seed, salt uint64) uint64 {
	z := seed + salt*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// token returns the continue token for the Pod at a position.
func token(i int) string { return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(i))) }

// position returns the position of a continue token.
func position(token string) (int, error) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return 0, fmt.Errorf("decoding the continue token: %w", err)
	}
	i, err := strconv.Atoi(string(text))
	if err != nil || i < 0 {
		return 0, fmt.Errorf("the continue token %q is no position", text)
	}
	return i, nil
}
