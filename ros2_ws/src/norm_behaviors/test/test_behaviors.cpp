// Copyright 2026 The Tactful authors
// SPDX-License-Identifier: Apache-2.0

// Trees with this plugin against servers and publishers that stand in for Tactful's nodes.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "behaviortree_cpp/bt_factory.h"
#include "norm_interfaces/action/check_utterance.hpp"
#include "norm_interfaces/action/select_action.hpp"
#include "norm_interfaces/msg/monitor_status.hpp"
#include "norm_interfaces/msg/open_flags.hpp"
#include "norm_interfaces/msg/outcome.hpp"
#include "norm_interfaces/msg/presence.hpp"
#include "norm_interfaces/msg/social_flag.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rclcpp_action/rclcpp_action.hpp"

using BT::NodeStatus;
using norm_interfaces::action::CheckUtterance;
using norm_interfaces::action::SelectAction;
using norm_interfaces::msg::MonitorStatus;
using norm_interfaces::msg::OpenFlags;
using norm_interfaces::msg::SocialFlag;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto PATIENCE = seconds(60);

/// Answers goals of both actions at once, or never.
class Nodes : public rclcpp::Node
{
public:
  explicit Nodes(bool answers)
  : Node("nodes", "tactful"),
    unspun_(std::make_shared<rclcpp::Node>("lists", "tactful")),
    flags(unspun_->create_publisher<OpenFlags>("open_flags", rclcpp::QoS(1).transient_local())),
    statuses(create_publisher<MonitorStatus>("status", 50)),
    selector_(serve<SelectAction>("select_action", answers)),
    monitor_(serve<CheckUtterance>("check_utterance", answers))
  {
  }

  std::atomic_int cancelled{0}, accepted{0};

private:
  const rclcpp::Node::SharedPtr unspun_;  // an executor would keep the publisher

public:
  rclcpp::Publisher<OpenFlags>::SharedPtr flags;
  const rclcpp::Publisher<MonitorStatus>::SharedPtr statuses;

private:
  static void fill(const SelectAction::Goal & goal, SelectAction::Result & result)
  {
    result.decision.chosen = goal.candidates.at(0);
    result.decision.explanation = "Because of " + goal.situation;
  }

  static bool is_lost(const SelectAction::Goal & goal) {return goal.situation == "lost";}
  static bool is_lost(const CheckUtterance::Goal &) {return false;}

  static void fill(const CheckUtterance::Goal & goal, CheckUtterance::Result & result)
  {
    result.check.checked = true;
    result.check.advised_against = goal.text == "Move it!";
    result.check.reason = "It sounds like an order.";
    result.check.correction = "Excuse me.";
  }

  template<typename ActionT>
  typename rclcpp_action::Server<ActionT>::SharedPtr serve(const std::string & name, bool answers)
  {
    using Handle = std::shared_ptr<rclcpp_action::ServerGoalHandle<ActionT>>;
    return rclcpp_action::create_server<ActionT>(
      this, name,
      [](const rclcpp_action::GoalUUID &, std::shared_ptr<const typename ActionT::Goal>) {
        return rclcpp_action::GoalResponse::ACCEPT_AND_EXECUTE;
      },
      [this](const Handle & handle) {
        // The goal is canceling once this has returned.
        std::thread(
          [handle, this] {
            while (!handle->is_canceling()) {
              std::this_thread::yield();
            }
            handle->canceled(std::make_shared<typename ActionT::Result>());
            ++cancelled;
          }).detach();
        return rclcpp_action::CancelResponse::ACCEPT;
      },
      [this, answers](const Handle & handle) {
        ++accepted;
        if (answers && is_lost(*handle->get_goal())) {
          handle->abort(std::make_shared<typename ActionT::Result>());
        } else if (answers) {
          auto result = std::make_shared<typename ActionT::Result>();
          fill(*handle->get_goal(), *result);
          handle->succeed(result);
        } else {
          open_.push_back(handle);  // a goal whose handle is gone ends as canceled
        }
      });
  }

  std::vector<std::shared_ptr<void>> open_;
  rclcpp_action::Server<SelectAction>::SharedPtr selector_;
  rclcpp_action::Server<CheckUtterance>::SharedPtr monitor_;
};

class Behaviors : public testing::Test
{
protected:
  Behaviors()
  {
    factory_.registerFromPlugin(std::getenv("PLUGIN"));
    blackboard_->set("node", std::make_shared<rclcpp::Node>("robot"));  // which nobody spins
  }

  ~Behaviors() override
  {
    executor_.cancel();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  /// Start the nodes beside the tree, and await that each finds the other.
  void start_nodes(bool answers)
  {
    nodes_ = std::make_shared<Nodes>(answers);
    executor_.add_node(nodes_);
    thread_ = std::thread([this] {executor_.spin();});
  }

  BT::Tree make_tree(const std::string & leaves)
  {
    return factory_.createTreeFromText(
      "<root BTCPP_format='4'><BehaviorTree ID='t'><Sequence>" + leaves +
      "</Sequence></BehaviorTree></root>",
      blackboard_);
  }

  static void until(const std::function<bool()> & is_reached)
  {
    const auto end = std::chrono::steady_clock::now() + PATIENCE;
    while (!is_reached()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      std::this_thread::sleep_for(milliseconds(5));
    }
  }

  /// Tick until the root ends so, whatever it said before: discovery takes time.
  static void tick_until(BT::Tree & tree, NodeStatus status)
  {
    until([&] {return tree.tickOnce() == status;});
  }

  std::string at(const std::string & key) {return blackboard_->get<std::string>(key);}

  BT::BehaviorTreeFactory factory_;
  BT::Blackboard::Ptr blackboard_ = BT::Blackboard::create();
  std::shared_ptr<Nodes> nodes_;
  rclcpp::executors::SingleThreadedExecutor executor_;
  std::thread thread_;
};

TEST(Times, absent_ones_convert)
{
  const SocialFlag flag;  // each time is absent, as the nodes write it
  const norm_interfaces::msg::Presence presence;
  for (const auto & time : {flag.header.stamp, flag.onset, flag.offset, flag.decision,
      presence.header.stamp, presence.since, presence.last_seen, presence.away_since})
  {
    EXPECT_EQ(rclcpp::Time(time).nanoseconds(), 0);
  }
}

TEST_F(Behaviors, an_absent_server_is_a_failure_with_a_reason)
{
  auto tree = make_tree(
    "<SelectAction server_name='left/select_action' candidates='Greet.;Wait.' reason='{reason}'/>");
  EXPECT_EQ(tree.tickOnce(), NodeStatus::FAILURE);
  EXPECT_EQ(at("reason"), "left/select_action: no node serves it");
}

TEST_F(Behaviors, an_action_is_chosen_and_checked)
{
  start_nodes(true);
  blackboard_->set("scene", std::string("a queue"));
  auto tree = make_tree(
    "<SelectAction candidates='Greet.;Wait.' situation='{scene}' chosen='{chosen}'"
    " reason='{reason}'/>"
    "<CheckUtterance text='{chosen}'/>");
  tick_until(tree, NodeStatus::SUCCESS);
  EXPECT_EQ(at("chosen"), "Greet.");
  EXPECT_EQ(at("reason"), "Because of a queue");
}

TEST_F(Behaviors, an_aborted_goal_without_a_result_is_a_failure)
{
  start_nodes(true);
  auto tree = make_tree(
    "<SelectAction candidates='Greet.;Wait.' situation='lost' reason='{reason}'/>");
  tick_until(tree, NodeStatus::RUNNING);
  tick_until(tree, NodeStatus::FAILURE);
  EXPECT_EQ(at("reason"), "tactful/select_action: its node gave no result");
}

TEST_F(Behaviors, words_that_are_advised_against_fail_with_a_correction)
{
  start_nodes(true);
  auto tree =
    make_tree("<CheckUtterance text='Move it!' correction='{instead}' reason='{reason}'/>");
  tick_until(tree, NodeStatus::RUNNING);
  tick_until(tree, NodeStatus::FAILURE);
  EXPECT_EQ(at("instead"), "Excuse me.");
  EXPECT_EQ(at("reason"), "It sounds like an order.");
}

TEST_F(Behaviors, a_halt_cancels_the_goal_before_and_after_it_is_accepted)
{
  start_nodes(false);
  auto tree = make_tree("<SelectAction candidates='Greet.;Wait.' within_s='600'/>");
  tick_until(tree, NodeStatus::RUNNING);
  tree.haltTree();
  until([this] {return nodes_->cancelled == 1;});
  ASSERT_EQ(tree.tickOnce(), NodeStatus::RUNNING);
  until([this] {return nodes_->accepted == 2;});
  ASSERT_EQ(tree.tickOnce(), NodeStatus::RUNNING);
  tree.haltTree();
  until([this] {return nodes_->cancelled == 2;});
}

TEST_F(Behaviors, a_late_answer_is_a_failure_with_a_reason_and_cancels_the_goal)
{
  start_nodes(false);
  auto tree =
    make_tree("<SelectAction candidates='Greet.;Wait.' within_s='0.1' reason='{reason}'/>");
  tick_until(tree, NodeStatus::RUNNING);
  tick_until(tree, NodeStatus::FAILURE);
  EXPECT_EQ(at("reason"), "tactful/select_action: no answer came in time");
  until([this] {return nodes_->cancelled == 1;});
}

TEST_F(Behaviors, the_condition_follows_flags_and_the_monitor)
{
  const std::string rest = " reason='{reason}'/>";
  auto any = make_tree("<SocialErrorOpen" + rest);
  auto calm = make_tree("<SocialErrorOpen if_unknown='calm'" + rest);
  auto inverted = make_tree("<Inverter><SocialErrorOpen" + rest + "</Inverter>");
  EXPECT_EQ(calm.tickOnce(), NodeStatus::FAILURE);
  EXPECT_EQ(inverted.tickOnce(), NodeStatus::FAILURE);
  EXPECT_EQ(any.tickOnce(), NodeStatus::SUCCESS);
  EXPECT_EQ(at("reason"), "no status of the monitor arrives; start it");
  start_nodes(true);
  MonitorStatus status;
  status.node = "/tactful/monitor";
  status.state = MonitorStatus::STATE_ACTIVE;
  const auto reach = [&](BT::Tree & tree, NodeStatus expected, const std::string & reason) {
      until(
        [&] {
          nodes_->statuses->publish(status);
          return tree.tickOnce() == expected && at("reason") == reason;
        });
    };
  const auto missing = "no list of open flags arrives; look at the monitor's parameter shadow";
  reach(any, NodeStatus::SUCCESS, missing);
  reach(calm, NodeStatus::FAILURE, missing);
  SocialFlag flag;
  flag.event_id = "1";
  flag.attributes = {SocialFlag::ATTRIBUTE_ENGAGEMENT};
  flag.rationale = "It looked away.";
  OpenFlags open;
  open.flags.push_back(flag);
  nodes_->flags->publish(open);
  reach(any, NodeStatus::SUCCESS, "It looked away.");
  reach(calm, NodeStatus::SUCCESS, "It looked away.");
  // Trees that are loaded after the flag was opened.
  auto same = make_tree("<SocialErrorOpen attribute='engagement'" + rest);
  auto other = make_tree("<SocialErrorOpen attribute='emotions'" + rest);
  auto brief = make_tree("<SocialErrorOpen within_s='0.2'" + rest);
  reach(same, NodeStatus::SUCCESS, "It looked away.");
  reach(other, NodeStatus::FAILURE, "");
  until(
    [&] {  // the same state again is no younger
      nodes_->flags->publish(open);
      nodes_->statuses->publish(status);
      return brief.tickOnce() == NodeStatus::FAILURE && at("reason").empty();
    });
  open.flags[0].polarity = SocialFlag::POLARITY_COMPETENCE;
  nodes_->flags->publish(open);
  reach(any, NodeStatus::FAILURE, "");
  open.flags = {flag};
  nodes_->flags->publish(open);
  reach(calm, NodeStatus::SUCCESS, "It looked away.");
  status.health = MonitorStatus::HEALTH_FAILED;
  status.reasons = {"no model"};
  reach(any, NodeStatus::SUCCESS, "no model");
  reach(calm, NodeStatus::FAILURE, "no model");
  status.health = MonitorStatus::HEALTH_OK;
  nodes_->flags->publish(OpenFlags());
  reach(any, NodeStatus::FAILURE, "");
  nodes_->flags.reset();
  reach(any, NodeStatus::SUCCESS, missing);
  reach(calm, NodeStatus::FAILURE, missing);
}

TEST_F(Behaviors, a_misspelt_port_is_an_error)
{
  for (const auto & port : {"attribute='emotion'", "if_unknown='closed'"}) {
    auto tree = make_tree(std::string("<SocialErrorOpen ") + port + "/>");
    EXPECT_THROW(tree.tickOnce(), BT::RuntimeError);
  }
}

TEST_F(Behaviors, the_example_tree_drives_after_it_asked)
{
  std::vector<std::string> driven;
  const auto stand_in = [&](const std::string & name, const BT::PortsList & ports) {
      factory_.registerSimpleAction(
        name,
        [&driven, name](BT::TreeNode &) {
          driven.push_back(name);
          return NodeStatus::SUCCESS;
        }, ports);
    };
  stand_in(
    "ComputePathToPose",
    {BT::InputPort<std::string>("goal"), BT::InputPort<std::string>("planner_id"),
      BT::OutputPort<std::string>("path")});
  stand_in(
    "FollowPath",
    {BT::InputPort<std::string>("path"), BT::InputPort<std::string>("controller_id")});
  factory_.registerNodeType<BT::SequenceNode>("PipelineSequence");
  factory_.registerSimpleDecorator(
    "RateController", [](NodeStatus status, BT::TreeNode &) {return status;},
    {BT::InputPort<double>("hz")});
  start_nodes(true);
  auto tree = factory_.createTreeFromFile(std::getenv("TREE"), blackboard_);
  MonitorStatus status;
  status.node = "/tactful/monitor";
  status.state = MonitorStatus::STATE_ACTIVE;
  nodes_->flags->publish(OpenFlags());
  until(
    [&] {
      nodes_->statuses->publish(status);
      return tree.tickOnce() == NodeStatus::SUCCESS;
    });
  EXPECT_EQ(driven, (std::vector<std::string>{"ComputePathToPose", "FollowPath"}));
}

int main(int argc, char ** argv)
{
  testing::InitGoogleTest(&argc, argv);
  rclcpp::init(argc, argv);
  const int failures = RUN_ALL_TESTS();
  rclcpp::shutdown();
  return failures;
}
