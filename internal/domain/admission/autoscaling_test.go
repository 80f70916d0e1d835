package admission

import (
	"errors"
	"testing"
)

func TestFederatedHPARules(t *testing.T) {
	hpa := func(spec string) string {
		return `{kind: FederatedHPA, metadata: {name: h}, spec: {scaleTargetRef: {kind: Deployment, name: web}, ` + spec + `}}`
	}
	metric := func(metric string) string { return hpa(`maxReplicas: 2, metrics: [` + metric + `]`) }
	up := func(rules string) string { return hpa(`maxReplicas: 2, behavior: {scaleUp: {` + rules + `}}`) }
	const prefix, rules = "spec.metrics[0].", "spec.behavior.scaleUp."
	runValidationCases(t, map[string]validationCase{
		"a valid autoscaler":                       {new: validFederatedHPA},
		"a name is a subdomain":                    {new: `{kind: FederatedHPA, metadata: {name: A}, spec: {scaleTargetRef: {kind: Deployment, name: web}, maxReplicas: 1}}`, errors: []string{"FieldValueInvalid metadata.name"}},
		"the target needs kind and name":           {new: `{kind: FederatedHPA, metadata: {name: h}, spec: {scaleTargetRef: {kind: "", name: a/b}, maxReplicas: 1}}`, errors: []string{"FieldValueRequired spec.scaleTargetRef.kind", "FieldValueInvalid spec.scaleTargetRef.name"}},
		"at least one replica":                     {new: hpa(`minReplicas: 0, maxReplicas: 0`), errors: []string{"FieldValueInvalid spec.minReplicas", "FieldValueInvalid spec.maxReplicas"}},
		"maxReplicas is not less than minReplicas": {new: hpa(`minReplicas: 3, maxReplicas: 2`), errors: []string{"FieldValueInvalid spec.maxReplicas"}},
		"an unknown type of metric":                {new: metric(`{type: External, external: {metric: {name: q}, target: {type: Value, value: "1"}}}`), errors: []string{"FieldValueNotSupported " + prefix + "type", "FieldValueForbidden " + prefix + "external"}},
		"a metric needs the source of its type": {
			new:    metric(`{type: Resource, pods: {metric: {name: q}, target: {type: AverageValue, averageValue: "1"}}}`),
			errors: []string{"FieldValueForbidden " + prefix + "pods", "FieldValueRequired " + prefix + "resource"},
		},
		"a target has a known type and positive numbers": {
			new:    metric(`{type: Object, object: {describedObject: {kind: K, name: thing}, metric: {name: q}, target: {type: Most, value: "0", averageValue: "-1", averageUtilization: 0}}}`),
			errors: []string{"FieldValueNotSupported " + prefix + "object.target.type", "FieldValueInvalid " + prefix + "object.target.value", "FieldValueInvalid " + prefix + "object.target.averageValue", "FieldValueInvalid " + prefix + "object.target.averageUtilization"},
		},
		"an object metric has a value": {
			new:    metric(`{type: Object, object: {describedObject: {kind: K, name: thing}, metric: {name: q}, target: {type: Value}}}`),
			errors: []string{"FieldValueRequired " + prefix + "object.target.averageValue"},
		},
		"a pods metric has an average":     {new: metric(`{type: Pods, pods: {metric: {name: q}, target: {type: Value, value: "1"}}}`), errors: []string{"FieldValueRequired " + prefix + "pods.target.averageValue"}},
		"a resource metric has one target": {new: metric(`{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 1, averageValue: "1"}}}`), errors: []string{"FieldValueRequired " + prefix + "resource.target.averageUtilization"}},
		"a resource metric has a target":   {new: metric(`{type: Resource, resource: {name: cpu, target: {type: Utilization}}}`), errors: []string{"FieldValueRequired " + prefix + "resource.target.averageUtilization"}},
		"an invalid container name":        {new: metric(`{type: ContainerResource, containerResource: {container: A, name: cpu, target: {type: Utilization, averageUtilization: 1}}}`), errors: []string{"FieldValueInvalid " + prefix + "containerResource.container"}},
		"a window is at most an hour":      {new: up(`stabilizationWindowSeconds: 3601, policies: [{type: Pods, value: 1, periodSeconds: 1}]`), errors: []string{"FieldValueInvalid " + rules + "stabilizationWindowSeconds"}},
		"a window is not negative":         {new: up(`stabilizationWindowSeconds: -1, policies: [{type: Pods, value: 1, periodSeconds: 1}]`), errors: []string{"FieldValueInvalid " + rules + "stabilizationWindowSeconds"}},
		"an unknown selection of policies": {new: up(`selectPolicy: Any, policies: [{type: Pods, value: 1, periodSeconds: 1}]`), errors: []string{"FieldValueNotSupported " + rules + "selectPolicy"}},
		"at least one policy":              {new: up(`selectPolicy: Max`), errors: []string{"FieldValueRequired " + rules + "policies"}},
		"a policy has a type, a value and a period": {
			new:    up(`policies: [{type: X, value: 0, periodSeconds: 1801}]`),
			errors: []string{"FieldValueNotSupported " + rules + "policies[0].type", "FieldValueInvalid " + rules + "policies[0].value", "FieldValueInvalid " + rules + "policies[0].periodSeconds"},
		},
	})
	const cpu = `metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]`
	runDefaultingCases(t, map[string]defaultingCase{
		"one replica and cpu at 80 %": {
			new:  hpa(`maxReplicas: 2`),
			want: hpa(`minReplicas: 1, maxReplicas: 2, ` + cpu),
		},
		"defaults of scaleUp and scaleDown": {
			new: hpa(`maxReplicas: 2, behavior: {}`),
			want: hpa(`minReplicas: 1, maxReplicas: 2, ` + cpu + `, behavior: {scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]},
				scaleDown: {selectPolicy: Max, policies: [{type: Percent, value: 100, periodSeconds: 15}]}}`),
		},
		"set fields of behavior are kept": {
			new: hpa(`maxReplicas: 2, behavior: {scaleUp: {stabilizationWindowSeconds: 5}, scaleDown: {selectPolicy: Disabled}}`),
			want: hpa(`minReplicas: 1, maxReplicas: 2, ` + cpu + `, behavior: {scaleUp: {stabilizationWindowSeconds: 5, selectPolicy: Max, policies: [{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]},
				scaleDown: {selectPolicy: Disabled, policies: [{type: Percent, value: 100, periodSeconds: 15}]}}`),
		},
	})
}

func TestCronFederatedHPARules(t *testing.T) {
	cron := func(target, rules string) string {
		return `{kind: CronFederatedHPA, metadata: {name: c}, spec: {scaleTargetRef: {` + target + `}, rules: [` + rules + `]}}`
	}
	workload := func(rules string) string { return cron(`apiVersion: apps/v1, kind: Deployment, name: web`, rules) }
	bounds := func(rule string) string {
		return cron(`apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, name: h`, `{name: a, schedule: x, `+rule+`}`)
	}
	alwaysInvalid := func(string) error { return errors.New("no") }
	runValidationCases(t, map[string]validationCase{
		"a valid schedule":      {new: validCron},
		"a name is a subdomain": {new: `{kind: CronFederatedHPA, metadata: {name: A}, spec: {scaleTargetRef: {kind: Deployment, name: web}, rules: []}}`, errors: []string{"FieldValueInvalid metadata.name"}},
		"the target is named":   {new: cron(`kind: Deployment, name: ""`, ``), errors: []string{"FieldValueRequired spec.scaleTargetRef.name"}},
		"FederatedHPA is the only target kind of its group": {
			new:    cron(`apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, name: h`, ``),
			errors: []string{"FieldValueNotSupported spec.scaleTargetRef.kind"},
		},
		"names of rules are unique": {
			new:    workload(`{name: a, schedule: x, targetReplicas: 1}, {name: a, schedule: x, targetReplicas: 1}`),
			errors: []string{"FieldValueDuplicate spec.rules[1].name"},
		},
		"schedules are cron expressions":              {new: validCron, rules: Options{ParseSchedule: alwaysInvalid}, errors: []string{"FieldValueInvalid spec.rules[0].schedule"}},
		"time zones exist":                            {new: workload(`{name: a, schedule: x, timeZone: X, targetReplicas: 1}`), rules: Options{LoadTimeZone: alwaysInvalid}, errors: []string{"FieldValueInvalid spec.rules[0].timeZone"}},
		"the time zone is optional":                   {new: validCron, rules: Options{LoadTimeZone: alwaysInvalid}},
		"a workload needs replicas, not limits":       {new: workload(`{name: a, schedule: x, targetMinReplicas: 1, targetMaxReplicas: 1}`), errors: []string{"FieldValueRequired spec.rules[0].targetReplicas"}, warnings: []string{"spec.rules[0].targetMinReplicas", "spec.rules[0].targetMaxReplicas"}},
		"replicas are not negative":                   {new: workload(`{name: a, schedule: x, targetReplicas: -1}`), errors: []string{"FieldValueInvalid spec.rules[0].targetReplicas"}},
		"a FederatedHPA needs limits, not replicas":   {new: bounds(`targetReplicas: 1`), errors: []string{"FieldValueRequired spec.rules[0].targetMinReplicas"}, warnings: []string{"spec.rules[0].targetReplicas"}},
		"one limit is enough":                         {new: bounds(`targetMaxReplicas: 1`)},
		"limits are positive":                         {new: bounds(`targetMinReplicas: 0, targetMaxReplicas: 0`), errors: []string{"FieldValueInvalid spec.rules[0].targetMinReplicas", "FieldValueInvalid spec.rules[0].targetMaxReplicas"}},
		"the minimum is not greater than the maximum": {new: bounds(`targetMinReplicas: 2, targetMaxReplicas: 1`), errors: []string{"FieldValueInvalid spec.rules[0].targetMinReplicas"}},
	})
}
