package placement

// Step is one of the steps of a scheduling, as a metric label.
type Step string

// Values of Step, in their order.
const (
	StepFilter         Step = "Filter"
	StepScore          Step = "Score"
	StepSelect         Step = "Select"
	StepAssignReplicas Step = "AssignReplicas"
)

// Point is where plugins are asked, as a metric label.
type Point string

// Values of Point.
const (
	PointFilter Point = "Filter"
	PointScore  Point = "Score"
)

// Observer is told what a scheduling is at, so that those who have a clock can
// measure it. Each function is called when something begins, and what it returns
// when that ends, by error or not. A nil function is not called.
type Observer struct {
	// Step is told of each step, once an affinity group.
	Step func(Step) (done func())
	// Point is told when all plugins of a point are asked about all clusters.
	Point func(Point) (done func())
	// Plugin is told when one plugin is asked about all clusters that are left.
	Plugin func(point Point, plugin string) (done func())
}

func (o Observer) step(step Step) (done func()) {
	if o.Step == nil {
		return nothing
	}
	return o.Step(step)
}

func (o Observer) point(point Point) (done func()) {
	if o.Point == nil {
		return nothing
	}
	return o.Point(point)
}

func (o Observer) plugin(point Point, plugin string) (done func()) {
	if o.Plugin == nil {
		return nothing
	}
	return o.Plugin(point, plugin)
}

func nothing() {}
