// Copyright 2026 The Tactful authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "behaviortree_cpp/bt_factory.h"
#include "norm_interfaces/action/check_utterance.hpp"
#include "norm_interfaces/action/select_action.hpp"
#include "norm_interfaces/msg/monitor_status.hpp"
#include "norm_interfaces/msg/open_flags.hpp"
#include "norm_interfaces/msg/outcome.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rclcpp_action/rclcpp_action.hpp"

namespace norm_behaviors
{

using BT::InputPort;
using BT::NodeStatus;
using BT::OutputPort;
using norm_interfaces::msg::MonitorStatus;
using norm_interfaces::msg::OpenFlags;
using norm_interfaces::msg::SocialFlag;
using std::chrono::seconds;
using std::chrono::steady_clock;
using Strings = std::vector<std::string>;

/// A callback group of the node on the blackboard, where Nav2 puts it too.
struct Group
{
  explicit Group(const BT::NodeConfig & config)
  : node(config.blackboard->get<rclcpp::Node::SharedPtr>("@node")),
    group(node->create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive, false)) {}

  rclcpp::Node::SharedPtr node;
  rclcpp::CallbackGroup::SharedPtr group;
};

/// Spins a group, so that no tick waits and nobody else needs to spin the node.
/// Declare it after what callbacks use.
class SpinningThread
{
public:
  explicit SpinningThread(const Group & of)
  {
    executor_.add_callback_group(of.group, of.node->get_node_base_interface());
    thread_ = std::thread(
      [this, ended = ended_.get_future().share()] {executor_.spin_until_future_complete(ended);});
  }

  ~SpinningThread()
  {
    ended_.set_value();
    executor_.cancel();
    thread_.join();
  }

private:
  rclcpp::executors::SingleThreadedExecutor executor_;
  std::promise<void> ended_;
  std::thread thread_;
};

template<typename T>
T input(const BT::TreeNode & leaf, const std::string & port)
{
  const auto value = leaf.getInput<T>(port);
  if (!value) {
    throw BT::RuntimeError(leaf.name(), ": ", value.error());
  }
  return *value;
}

/// Sends a goal, and reads its result in a later tick.
/// A halt cancels the goal; without a server the leaf fails.
template<typename ActionT>
class GoalLeaf : public BT::StatefulActionNode
{
public:
  using Goal = typename ActionT::Goal;
  using Client = rclcpp_action::Client<ActionT>;
  using Handle = typename Client::GoalHandle::SharedPtr;
  using Answer = typename Client::WrappedResult;

  GoalLeaf(const std::string & name, const BT::NodeConfig & config)
  : StatefulActionNode(name, config), action_(input<std::string>(*this, "server_name")),
    of_(config),
    client_(rclcpp_action::create_client<ActionT>(of_.node, action_, of_.group)), thread_(of_) {}

  static BT::PortsList and_common(BT::PortsList ports, const std::string & action)
  {
    ports.insert(InputPort<std::string>("server_name", action, "name of the action"));
    ports.insert(InputPort<double>("within_s", 5.0, "time for an answer"));
    ports.insert(OutputPort<std::string>("reason", "of the decision or of the failure"));
    return ports;
  }

  NodeStatus onStart() override
  {
    if (!client_->action_server_is_ready()) {
      return fail(action_ + ": no node serves it");
    }
    auto goal = make_goal();
    until_ = of_.node->now() + rclcpp::Duration::from_seconds(input<double>(*this, "within_s"));
    goal.deadline = until_;
    halted_ = std::make_shared<std::atomic_bool>(false);
    auto answer = std::make_shared<std::promise<Answer>>();
    answer_ = answer->get_future();
    typename Client::SendGoalOptions options;
    options.goal_response_callback = [this, halted = halted_](const Handle & handle) {
        if (handle && *halted) {
          client_->async_cancel_goal(handle);
        }
      };
    options.result_callback = [answer](const Answer & result) {answer->set_value(result);};
    handle_ = client_->async_send_goal(goal, options);
    return NodeStatus::RUNNING;
  }

  NodeStatus onRunning() override
  {
    if (is_ready(answer_)) {
      return judge(answer_.get());
    }
    if (is_ready(handle_) && !handle_.get()) {
      return fail(action_ + ": the node is not configured");
    }
    const bool is_late = of_.node->now() > until_ + rclcpp::Duration(1, 0);  // of grace
    if (!is_late && client_->action_server_is_ready()) {
      return NodeStatus::RUNNING;
    }
    onHalted();
    return fail(action_ + (is_late ? ": no answer came in time" : ": no node serves it"));
  }

  void onHalted() override
  {
    *halted_ = true;  // for a goal that is accepted later
    try {
      if (is_ready(handle_) && handle_.get()) {
        client_->async_cancel_goal(handle_.get());
      }
    } catch (const rclcpp_action::exceptions::UnknownGoalHandleError &) {
      // Its result has just arrived.
    }
  }

protected:
  virtual Goal make_goal() = 0;
  virtual NodeStatus judge(const Answer & answer) = 0;

  NodeStatus fail(std::string reason)
  {
    reason = reason.empty() ? action_ + ": its node gave no result" : reason;
    RCLCPP_INFO(of_.node->get_logger(), "%s: %s", name().c_str(), reason.c_str());
    setOutput("reason", reason);
    return NodeStatus::FAILURE;
  }

private:
  template<typename FutureT>
  static bool is_ready(const FutureT & future)
  {
    return future.wait_for(seconds(0)) == std::future_status::ready;
  }

  const std::string action_;
  const Group of_;
  const typename Client::SharedPtr client_;
  rclcpp::Time until_;
  std::shared_ptr<std::atomic_bool> halted_;
  std::shared_future<Handle> handle_;
  std::future<Answer> answer_;
  SpinningThread thread_;
};

/// Succeeds with an action. To abstain is a failure.
class SelectAction : public GoalLeaf<norm_interfaces::action::SelectAction>
{
public:
  using GoalLeaf::GoalLeaf;

  static BT::PortsList providedPorts()
  {
    return and_common(
      {InputPort<Strings>("candidates", Strings(), "as in A.;B.; those of the skills if none"),
        InputPort<std::string>("situation", "", "what the robot knows of the scene"),
        InputPort<Strings>("facts", Strings(), "for the preconditions of skills"),
        OutputPort<std::string>("chosen", "the text of the chosen action")},
      "tactful/select_action");
  }

private:
  Goal make_goal() override
  {
    Goal goal;
    goal.candidates = input<Strings>(*this, "candidates");
    goal.situation = input<std::string>(*this, "situation");
    goal.facts = input<Strings>(*this, "facts");
    return goal;
  }

  NodeStatus judge(const Answer & answer) override
  {
    const auto & decision = answer.result->decision;
    const bool is_answered = decision.outcome == norm_interfaces::msg::Outcome::ANSWERED;
    if (answer.code != rclcpp_action::ResultCode::SUCCEEDED || !is_answered) {
      const auto & error = answer.result->error_msg;
      return fail(error.empty() ? decision.explanation : error);
    }
    setOutput("chosen", decision.chosen);
    setOutput("reason", decision.explanation);
    return NodeStatus::SUCCESS;
  }
};

/// Succeeds where the words were checked and nothing advises against them.
class CheckUtterance : public GoalLeaf<norm_interfaces::action::CheckUtterance>
{
public:
  using GoalLeaf::GoalLeaf;

  static BT::PortsList providedPorts()
  {
    return and_common(
      {InputPort<std::string>("text", "what the robot is about to say"),
        OutputPort<std::string>("correction", "what to say instead")},
      "tactful/check_utterance");
  }

private:
  Goal make_goal() override
  {
    Goal goal;
    goal.text = input<std::string>(*this, "text");
    return goal;
  }

  NodeStatus judge(const Answer & answer) override
  {
    const auto & check = answer.result->check;
    setOutput("correction", check.correction);
    setOutput("reason", check.reason);
    if (check.checked && !check.advised_against) {
      return NodeStatus::SUCCESS;
    }
    return fail(check.checked ? check.reason : answer.result->error_msg);
  }
};

/// Succeeds while an error of an attribute, or of any, is open that came in the last `within_s`.
///
/// An error is open until it is closed or withdrawn, or becomes a competence. Time is that of
/// arrival, so clocks of other machines do not matter. While no monitor works, nothing is known,
/// and `if_unknown` says how the leaf answers.
class SocialErrorOpen : public BT::ConditionNode
{
public:
  SocialErrorOpen(const std::string & name, const BT::NodeConfig & config)
  : ConditionNode(name, config), of_(config),
    flags_(subscribe("topic", rclcpp::QoS(1).transient_local(), &SocialErrorOpen::set_open)),
    statuses_(subscribe("status_topic", rclcpp::QoS(50), &SocialErrorOpen::add_status)),
    thread_(of_) {}

  static BT::PortsList providedPorts()
  {
    return {InputPort<std::string>("attribute", "", "such as emotions; any if empty"),
      InputPort<double>("within_s", 30.0, "age from which an error no longer counts"),
      InputPort<std::string>("if_unknown", "open", "the answer of a dead monitor: open or calm"),
      InputPort<std::string>("topic", "tactful/open_flags", "the monitor's list of open flags"),
      InputPort<std::string>("status_topic", "tactful/status", "the status of the nodes"),
      OutputPort<std::string>("reason", "what was wrong, or why nothing is known")};
  }

  NodeStatus tick() override
  {
    static const Strings attributes{  // as SocialFlag numbers them
      "emotions", "engagement", "conversational_mechanics", "knowledge_state", "user_intention",
      "social_context_and_relationships", "social_norms_and_routines"};
    const auto attribute = input<std::string>(*this, "attribute");
    const auto number =
      std::find(attributes.begin(), attributes.end(), attribute) - attributes.begin();
    if (!attribute.empty() && attributes.begin() + number == attributes.end()) {
      throw BT::RuntimeError(name(), ": no attribute is named ", attribute);
    }
    const auto if_unknown = input<std::string>(*this, "if_unknown");
    if (if_unknown != "open" && if_unknown != "calm") {
      throw BT::RuntimeError(name(), ": if_unknown is open or calm, not ", if_unknown);
    }
    const std::chrono::duration<double> within(input<double>(*this, "within_s"));
    const std::lock_guard<std::mutex> lock(mutex_);
    // It sends one a second.
    const bool is_lost = !heartbeat_ || steady_clock::now() - *heartbeat_ > seconds(5);
    std::string reason = is_lost ? "no status of the monitor arrives; start it" : problem_;
    if (flags_->get_publisher_count() == 0) {
      open_.reset();  // the list of a monitor that ended
    }
    if (reason.empty() && !open_) {
      reason = "no list of open flags arrives; look at the monitor's parameter shadow";
    }
    static const Errors none;
    const bool is_known = reason.empty();
    bool is_open = !is_known && if_unknown == "open";
    for (const auto & [event, error] : is_known ? *open_ : none) {
      const auto & [arrival, flag] = error;
      const bool is_meant = attribute.empty() ||
        std::find(flag.attributes.begin(), flag.attributes.end(), number) != flag.attributes.end();
      if (is_meant && steady_clock::now() - arrival <= within) {
        is_open = true;
        reason = flag.rationale;
      }
    }
    setOutput("reason", reason);
    return is_open ? NodeStatus::SUCCESS : NodeStatus::FAILURE;
  }

private:
  template<typename MessageT>
  typename rclcpp::Subscription<MessageT>::SharedPtr subscribe(
    const std::string & port, const rclcpp::QoS & qos,
    void (SocialErrorOpen::* add)(const MessageT &))
  {
    rclcpp::SubscriptionOptions options;
    options.callback_group = of_.group;
    const auto callback = [this, add](const MessageT & message) {(this->*add)(message);};
    return of_.node->create_subscription<MessageT>(
      input<std::string>(*this, port), qos, callback, options);
  }

  void set_open(const OpenFlags & message)
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Errors errors;
    for (const auto & flag : message.flags) {
      if (flag.polarity == SocialFlag::POLARITY_ERROR) {
        errors[flag.event_id] = {steady_clock::now(), flag};
      }
    }
    for (const auto & [event, error] : open_.value_or(Errors())) {
      const auto same = errors.find(event);
      if (same != errors.end() && same->second.second.header == error.second.header) {
        same->second.first = error.first;  // this state arrived in an earlier list
      }
    }
    open_ = errors;
  }

  void add_status(const MonitorStatus & status)
  {
    if (status.node.substr(status.node.rfind('/') + 1) != "monitor") {
      return;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    heartbeat_ = steady_clock::now();
    problem_.clear();
    if (status.state != MonitorStatus::STATE_ACTIVE ||
      status.health == MonitorStatus::HEALTH_FAILED)
    {
      problem_ = status.reasons.empty() ? "the monitor is not active" : status.reasons.front();
    }
  }

  using Errors = std::map<std::string, std::pair<steady_clock::time_point, SocialFlag>>;

  std::mutex mutex_;
  std::optional<Errors> open_;  // by event
  std::string problem_;
  std::optional<steady_clock::time_point> heartbeat_;
  const Group of_;
  const rclcpp::Subscription<OpenFlags>::SharedPtr flags_;
  const rclcpp::Subscription<MonitorStatus>::SharedPtr statuses_;
  SpinningThread thread_;
};

}  // namespace norm_behaviors

BT_REGISTER_NODES(factory)
{
  factory.registerNodeType<norm_behaviors::SelectAction>("SelectAction");
  factory.registerNodeType<norm_behaviors::CheckUtterance>("CheckUtterance");
  factory.registerNodeType<norm_behaviors::SocialErrorOpen>("SocialErrorOpen");
}
